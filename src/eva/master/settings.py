"""What may be chosen about a master."""

from __future__ import annotations

from dataclasses import dataclass, field

from eva.control.settings import ControllerSettings
from eva.model.units import MS_PER_HOUR, MS_PER_SECOND


@dataclass(frozen=True, slots=True)
class MasterSettings:
    """`round_ms` is the scheduling period; the other times bound how long the world may be silent.

    `settle_ms` is for how long a cloud may not yet list an instance that it has accepted.
    """

    cluster: str = "eva"
    policy: str = "eva"
    controller: ControllerSettings = field(default_factory=ControllerSettings)
    round_ms: int = 300 * MS_PER_SECOND
    poll_ms: int = 10 * MS_PER_SECOND
    settle_ms: int = 60 * MS_PER_SECOND
    reap_ms: int = 30 * MS_PER_SECOND  # between two looks for instances that nobody knows
    unreachable_ms: int = 120 * MS_PER_SECOND
    setup_limit_ms: int = 1_200 * MS_PER_SECOND
    prices_ms: int = 6 * MS_PER_HOUR  # between two looks at the price list
    prices_again_ms: int = 600 * MS_PER_SECOND  # where the last one failed in part
    lease_ttl_ms: int = 15 * MS_PER_SECOND
    snapshot_every: int = 20_000  # records between two snapshots, which stop all else meanwhile
    keys_kept_ms: int = 7 * 86_400 * MS_PER_SECOND  # answers given under idempotency keys
    compact: bool = False
    containers: bool = True  # whether workers can run images
