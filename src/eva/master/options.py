"""What `eva serve` may be told, checked before anything is started."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from eva.adapters import instance_metadata
from eva.master.listening import own_address
from eva.model.catalog import Catalog, InstanceDelays
from eva.model.errors import InputError

DEFAULT_PORT = 7_332
_MOST_INTERRUPTIONS = 1_000
_DELAYS = ("acquire_ms", "start_worker_ms", "register_worker_ms", "terminate_ms")


@dataclass(frozen=True, slots=True)
class CloudDefaults:
    """What depends on the cloud where nobody says otherwise."""

    catalog: str
    delay_scale: float
    dead_man_s: float
    heartbeat_s: float
    elsewhere: bool  # whether instances are other machines, which have to reach this one
    metadata: str = ""  # where an instance asks about itself, if there is such a place


CLOUDS: Mapping[str, CloudDefaults] = {
    "local": CloudDefaults("paper", 0.0, 600.0, 1.0, elsewhere=False),
    "aws": CloudDefaults(
        "aws", 1.0, 1_800.0, 5.0, elsewhere=True, metadata=instance_metadata.ADDRESS
    ),
}
_ALL_ADDRESSES = "0.0.0.0"  # noqa: S104  workers' ports speak mutual TLS and take join tokens


@dataclass(frozen=True, slots=True)
class Filled:
    """Options with the defaults of their cloud filled in."""

    catalog: str
    delay_scale: float
    dead_man_s: float
    heartbeat_s: float
    workers_host: str
    advertise: str


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What is None is up to the cloud: `filled` has it.

    `delay_scale` shortens or stretches the catalog's delays, which a local cloud then plays.
    `workers_host` is where the workers' ports listen, and `advertise` what instances are told.
    `spot_interruptions` is how many an hour are expected of an instance on spot; a journal may be
    gone on with under another belief, since it moves no money and no task of the past.
    """

    home: Path
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    store: str | None = None
    storage: str | None = None
    catalog: str | None = None
    policy: str = "eva"
    round_s: float = 300.0
    delay_scale: float | None = None
    runtime: str = "process"
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    cluster: str = "eva"
    dead_man_s: float | None = None
    heartbeat_s: float | None = None
    cloud: str = "local"
    aws_config: Path | None = None
    endpoint_url: str | None = None
    workers_host: str | None = None
    advertise: str | None = None
    spot_interruptions: float | None = None

    @property
    def filled(self) -> Filled:
        usual = CLOUDS[self.cloud]
        return Filled(
            self.catalog or usual.catalog,
            usual.delay_scale if self.delay_scale is None else self.delay_scale,
            usual.dead_man_s if self.dead_man_s is None else self.dead_man_s,
            usual.heartbeat_s if self.heartbeat_s is None else self.heartbeat_s,
            self.workers_host or (_ALL_ADDRESSES if usual.elsewhere else self.host),
            self.advertise or (own_address() if usual.elsewhere else self.host),
        )

    def check(self) -> None:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise InputError.single("--tls-cert, --tls-key", "give both, or neither")
        if not is_loopback(self.host) and self.tls_certificate is None:
            raise InputError.single(
                f"--host {self.host}",
                "is reachable from other machines, and tokens would cross the network in the "
                "clear: give --tls-cert and --tls-key, or stay on 127.0.0.1",
            )
        if not 0.1 <= self.round_s <= 86_400:
            raise InputError.single("--round", f"{self.round_s:g} s is not between 0.1 s and a day")
        if not 0 <= (self.delay_scale or 0) <= 100:
            raise InputError.single("--delay-scale", f"{self.delay_scale:g} is not in 0 to 100")
        if not 0 <= (self.spot_interruptions or 0) <= _MOST_INTERRUPTIONS:
            raise InputError.single(
                "--spot-interruptions",
                f"{self.spot_interruptions:g} an hour is not in 0 to {_MOST_INTERRUPTIONS}",
            )
        self._check_cloud()
        if self.runtime not in {"process", "docker"}:
            raise InputError.single("--runtime", f"{self.runtime!r} is neither process nor docker")
        if not 0 <= self.port <= 65_535:
            raise InputError.single("--port", f"{self.port} is not in 0 to 65535")

    def _check_cloud(self) -> None:
        if self.cloud not in CLOUDS:
            raise InputError.single("--cloud", f"{self.cloud!r} is none of {', '.join(CLOUDS)}")
        for name, given in (
            ("--aws-config", self.aws_config),
            ("--endpoint-url", self.endpoint_url),
        ):
            if given is not None and self.cloud != "aws":
                raise InputError.single(name, "is for --cloud aws")


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def with_delays_scaled(catalog: Catalog, scale: float) -> Catalog:
    """The same prices; instances come and go at another pace, and are planned with so."""
    if scale == 1.0:
        return catalog

    def scaled(delays: InstanceDelays) -> InstanceDelays:
        return InstanceDelays(*(round(scale * getattr(delays, name)) for name in _DELAYS))

    return catalog.with_types(replace(kind, delays=scaled(kind.delays)) for kind in catalog)
