"""What may be chosen about a simulation. The defaults are the rules of the paper's evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from eva.control.settings import Migrate
from eva.model.colocation import DEFAULT_THROUGHPUT
from eva.model.units import MS_PER_SECOND
from eva.traces.interference import MEASURED, Interference

ROUND_MS = 300 * MS_PER_SECOND
Checks = Literal["off", "touched", "full"]


@dataclass(frozen=True, slots=True)
class DelaySettings:
    """Delays as given, scaled, or scaled by a factor drawn anew each time from a range.

    `task_scale` is the factor of the paper's sweep over migration delay: it applies to the delays
    of tasks, `instance_scale` to those of instances.
    """

    task_scale: float = 1.0
    instance_scale: float = 1.0
    jitter: tuple[float, float] | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class FaultSettings:
    """Probabilities of what may go wrong, each per occasion. The defaults: nothing.

    Late messages come up to `late_ms` later than they should; a late plan lets the world move on
    while it is computed. A crash happens within `within_ms` after the task has started; an
    instance is lost, or gets a spot notice, within `within_ms` after it has registered. Prices may
    change before every round.

    `interruptions_per_hour` is no probability but a rate, and strikes what is on spot alone: it is
    told `spot_deadline_ms` ahead, and taken at the deadline.
    """

    seed: int = 0
    launch_refused: float = 0.0
    instance_lost: float = 0.0
    instance_unreachable: float = 0.0
    spot_notice: float = 0.0
    interruptions_per_hour: float = 0.0
    start_failed: float = 0.0
    checkpoint_failed: float = 0.0
    task_crashes: float = 0.0
    job_cancelled: float = 0.0
    message_late: float = 0.0
    message_twice: float = 0.0
    plan_late: float = 0.0
    plan_failed: float = 0.0
    catalog_changed: float = 0.0
    late_ms: int = 400 * MS_PER_SECOND
    within_ms: int = 7_200 * MS_PER_SECOND
    spot_deadline_ms: int = 120 * MS_PER_SECOND

    @property
    def any(self) -> bool:
        return any(
            (
                self.launch_refused,
                self.instance_lost,
                self.instance_unreachable,
                self.spot_notice,
                self.interruptions_per_hour,
                self.start_failed,
                self.checkpoint_failed,
                self.task_crashes,
                self.job_cancelled,
                self.message_late,
                self.message_twice,
                self.plan_late,
                self.plan_failed,
                self.catalog_changed,
            )
        )


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """One simulation. `checks` says how much of the invariants is checked after each event."""

    round_ms: int = ROUND_MS
    migrate: Migrate = "prepare-first"
    default_throughput: float = DEFAULT_THROUGHPUT
    interference: Interference = MEASURED
    delays: DelaySettings = field(default_factory=DelaySettings)
    faults: FaultSettings = field(default_factory=FaultSettings)
    noise: float = 0.0  # standard deviation of observed throughput, relative
    noise_seed: int = 0
    checks: Checks = "touched"
    journal_hash: bool = False
    quiet_rounds_limit: int = 1_000
