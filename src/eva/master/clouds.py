"""What a master works with, by the cloud that it was told to rent from: one function for each.

What differs between clouds is said here and nowhere else: which instances, how prices are learnt,
which storage all of them see, and how long the world may take before it is taken for lost.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from eva.adapters.aws import config_file, open_ec2
from eva.adapters.aws.config_file import AwsConfig
from eva.adapters.aws.listing import open_price_list
from eva.adapters.grpc.link import LinkTimings
from eva.adapters.grpc.server import GrpcWorkers, Listening
from eva.adapters.identity.authority import Authority
from eva.adapters.local.cloud import LocalCloud, LocalDelays
from eva.adapters.stores import open_storage
from eva.control.settings import ControllerSettings
from eva.inputs import catalogs
from eva.master.clock import wall_ms
from eva.master.listening import worker_ports
from eva.master.options import CLOUDS, ServeOptions, with_delays_scaled
from eva.master.pricing import Priced
from eva.master.service import Surroundings
from eva.master.settings import MasterSettings
from eva.model.catalog import Catalog
from eva.model.units import MS_PER_SECOND
from eva.ports.cloud import Cloud
from eva.ports.journal import Journal
from eva.scheduling.spot import SpotRisk

_SHORTEST_SILENCE_MS = 10 * MS_PER_SECOND


def surroundings(options: ServeOptions, journal: Journal, authority: Authority) -> Surroundings:
    """Of the cloud that `options` name."""
    return _SURROUNDINGS[options.cloud](options, journal, authority)


def master_settings(options: ServeOptions) -> MasterSettings:
    round_ms = round(options.round_s * MS_PER_SECOND)
    believed = options.spot_interruptions
    risk = SpotRisk() if believed is None else SpotRisk.believing(believed)
    settings = MasterSettings(
        controller=ControllerSettings(spot_risk=risk),
        cluster=options.cluster,
        policy=options.policy,
        round_ms=round_ms,
        containers=options.runtime == "docker",
    )
    return _TIMES[options.cloud](options, settings)


# Local


def _local(options: ServeOptions, journal: Journal, authority: Authority) -> Surroundings:
    importlib.import_module("eva_iterator")  # its workers are of this environment, and need it
    home = options.home.resolve()
    folder = home / "instances" / authority.cluster
    cloud = LocalCloud(folder, wall_ms, LocalDelays(scale=1.0))
    return _assembled(options, journal, authority, cloud, options.storage or str(home / "storage"))


def _local_times(_options: ServeOptions, settings: MasterSettings) -> MasterSettings:
    """Everything is on this machine, and may be looked at often."""
    return replace(
        settings,
        poll_ms=min(settings.round_ms, 500),
        settle_ms=5 * MS_PER_SECOND,
        unreachable_ms=60 * MS_PER_SECOND,
    )


# AWS


def aws_config(options: ServeOptions) -> AwsConfig:
    """As the file says, at the endpoint that was asked for."""
    config = config_file.read(options.aws_config or options.home / config_file.FILE_NAME)
    if options.endpoint_url is None:
        return config
    return replace(config, settings=replace(config.settings, endpoint=options.endpoint_url))


def _aws(options: ServeOptions, journal: Journal, authority: Authority) -> Surroundings:
    config = aws_config(options)
    folder = options.home.resolve() / "aws"
    cloud = open_ec2(
        config.settings,
        folder,
        wall_ms,
        journal=authority.cluster,
        new_cluster=journal.head() == 0,
    )
    around = _assembled(
        options, journal, authority, cloud, options.storage or config.storage, config.worker_ports
    )
    listed = catalogs.load(options.filled.catalog)
    prices = open_price_list(config.settings, folder, listed, wall_ms)
    return replace(around, priced=Priced(prices, partial(offered, options)))


def _aws_times(options: ServeOptions, settings: MasterSettings) -> MasterSettings:
    """Calls are counted, machines take minutes to boot, and networks have bad moments.

    For how long EC2 may not show what it has accepted is said once, in the settings of AWS.
    """
    return replace(
        settings,
        poll_ms=10 * MS_PER_SECOND,
        settle_ms=aws_config(options).settings.settle_ms,
        reap_ms=15 * MS_PER_SECOND,
        unreachable_ms=180 * MS_PER_SECOND,
        setup_limit_ms=1_800 * MS_PER_SECOND,
    )


# For all


def _assembled(
    options: ServeOptions,
    journal: Journal,
    authority: Authority,
    cloud: Cloud,
    storage: str,
    ports: Sequence[int] = (),
) -> Surroundings:
    opened = open_storage(storage)
    opened.check()
    return Surroundings(
        catalog=catalog_of(options),
        journal=journal,
        cloud=cloud,
        workers=_workers(options, authority, storage, ports),
        storage=opened,
        home=options.home.resolve(),
    )


def catalog_of(options: ServeOptions) -> Catalog:
    return offered(options, catalogs.load(options.filled.catalog))


def offered(options: ServeOptions, prices: Catalog) -> Catalog:
    """What is rented at such prices."""
    return with_delays_scaled(prices, options.filled.delay_scale)


def _workers(
    options: ServeOptions, authority: Authority, storage: str, ports: Sequence[int]
) -> GrpcWorkers:
    """At these `ports`, or at any that are free."""
    filled = options.filled
    port, join_port = ports or worker_ports(options.home.resolve(), filled.workers_host)
    where = Listening(
        filled.workers_host,
        port,
        join_port,
        filled.advertise,
        storage,
        options.runtime,
        CLOUDS[options.cloud].metadata,
    )
    heartbeat_ms = round(filled.heartbeat_s * MS_PER_SECOND)
    timings = LinkTimings(
        heartbeat_ms=heartbeat_ms,
        silence_ms=max(_SHORTEST_SILENCE_MS, 4 * heartbeat_ms),
        dead_man_ms=round(filled.dead_man_s * MS_PER_SECOND),
    )
    return GrpcWorkers(authority, wall_ms, where, timings)


_SURROUNDINGS: Mapping[str, Callable[[ServeOptions, Journal, Authority], Surroundings]] = {
    "local": _local,
    "aws": _aws,
}
_TIMES: Mapping[str, Callable[[ServeOptions, MasterSettings], MasterSettings]] = {
    "local": _local_times,
    "aws": _aws_times,
}
