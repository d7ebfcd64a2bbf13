"""What `eva serve` may be told, checked before anything is started."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from pathlib import Path

from eva.model.catalog import Catalog, InstanceDelays
from eva.model.errors import InputError

DEFAULT_PORT = 7_332
_DELAYS = ("acquire_ms", "start_worker_ms", "register_worker_ms", "terminate_ms")


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """`delay_scale` shortens or stretches the catalog's delays, which a local cloud then plays."""

    home: Path
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    store: str | None = None
    storage: str | None = None
    catalog: str = "paper"
    policy: str = "eva"
    round_s: float = 300.0
    delay_scale: float = 0.0
    runtime: str = "process"
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    cluster: str = "eva"
    dead_man_s: float = 600.0
    heartbeat_s: float = 1.0

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
        if not 0 <= self.delay_scale <= 100:
            raise InputError.single("--delay-scale", f"{self.delay_scale:g} is not in 0 to 100")
        if self.runtime not in {"process", "docker"}:
            raise InputError.single("--runtime", f"{self.runtime!r} is neither process nor docker")
        if not 0 <= self.port <= 65_535:
            raise InputError.single("--port", f"{self.port} is not in 0 to 65535")


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
