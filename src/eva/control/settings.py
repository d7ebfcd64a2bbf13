"""What may be chosen about the control loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from eva.model.colocation import DEFAULT_THROUGHPUT
from eva.model.units import MS_PER_SECOND
from eva.scheduling.spot import SpotRisk

Migrate = Literal["prepare-first", "stop-first"]


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """`migrate`: whether a job runs on until its targets are registered, or stops at once.

    `default_throughput` is the paper's t. A failed job waits 1, 2, 4, ... rounds before it is
    tried again, at most `backoff_limit_rounds`. The observations of multi-task jobs are attributed
    again every `reattribute_rounds`, changed or not, because blame for them can shift. A type that
    the cloud refused is not asked for again for `set_aside_ms`. `spot_risk` is what is believed of
    interruptions on spot.
    """

    migrate: Migrate = "prepare-first"
    default_throughput: float = DEFAULT_THROUGHPUT
    backoff_limit_rounds: int = 32
    reattribute_rounds: int = 12
    set_aside_ms: int = 180 * MS_PER_SECOND
    spot_risk: SpotRisk = field(default_factory=SpotRisk)

    def backoff_rounds(self, failures: int) -> int:
        return int(min(self.backoff_limit_rounds, 2 ** min(max(0, failures - 1), 30)))
