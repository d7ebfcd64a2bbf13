"""A real master that rents from the proxy before moto, with or without machines behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from eva.adapters.aws import AwsSettings, config_file
from eva.adapters.aws.config_file import AwsConfig
from eva.master.clock import wall_ms
from eva.master.options import ServeOptions
from tests.end_to_end.live.cluster import LiveCluster
from tests.support.cloud_proxy import CloudProxy
from tests.support.moto_server import IMAGE, REGION, direct_client

ZONES = ("us-east-1a", "us-east-1b")
BUCKET = "eva-of-the-tests"
ADVERTISED = "127.0.0.2"
SETTINGS = AwsSettings("tests", REGION, IMAGE, ZONES)


@contextmanager
def aws_account(
    home: Path,
    moto: tuple[str, int],
    settings: AwsSettings = SETTINGS,
    **chosen: Any,
) -> Iterator[tuple[LiveCluster, CloudProxy]]:
    """An empty account, and a cluster of it whose master is not started yet, nor ended here.

    `chosen` are more of its options.
    """
    client = direct_client("s3", moto)
    client.create_bucket(Bucket=BUCKET)
    client.close()
    proxy = CloudProxy(moto, wall_ms)
    with proxy.running() as endpoint:
        home.mkdir(exist_ok=True)
        config_file.write(home / "aws.yaml", AwsConfig(settings, BUCKET))
        cluster = LiveCluster(home)
        options = ServeOptions(
            home,
            port=0,
            round_s=1.0,
            cloud="aws",
            endpoint_url=endpoint,
            workers_host="127.0.0.1",
            advertise=ADVERTISED,
        )
        cluster.options = replace(options, **chosen)
        try:
            yield cluster, proxy
        finally:
            proxy.reset()


def _as_moto_has_it(_proxy: CloudProxy) -> None: ...


@contextmanager
def aws_cluster(
    home: Path,
    moto: tuple[str, int],
    prepare: Callable[[CloudProxy], None] = _as_moto_has_it,
) -> Iterator[tuple[LiveCluster, CloudProxy]]:
    """From the start of its master to the end of it and all that it rented."""
    with aws_account(home, moto) as (cluster, proxy):
        prepare(proxy)
        cluster.start()
        try:
            yield cluster, proxy
        finally:
            cluster.down()
