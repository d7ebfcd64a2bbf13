"""Jobs and their tasks, as a user asked for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from eva.model.ids import Workload
from eva.model.quick_pickle import quick_pickle
from eva.model.resources import Demand
from eva.model.spot import on_demand


@quick_pickle
@dataclass(frozen=True, slots=True)
class StandaloneThroughput:
    """Iterations per second of a task that runs alone, per family where it differs.

    Optional everywhere: what nobody states, the Profiler measures. A machine on spot is as fast.
    """

    default: float | None = None
    per_family: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "per_family", tuple(sorted(self.per_family)))

    def on(self, family: str) -> float | None:
        family = on_demand(family)
        for name, throughput in self.per_family:
            if name == family:
                return throughput
        return self.default


UNSTATED = StandaloneThroughput()


@quick_pickle
@dataclass(frozen=True, slots=True)
class TaskDelays:
    """What moving a task costs in time: stopping it here, and getting it going there."""

    checkpoint_ms: int = 0
    launch_ms: int = 0


@dataclass(frozen=True)
class TaskSpec:
    """One task of a job: what it needs, and how it is recognised by the throughput table."""

    workload: Workload
    demand: Demand
    throughput: StandaloneThroughput = UNSTATED
    delays: TaskDelays = TaskDelays()

    @cached_property
    def _hash(self) -> int:
        return hash((self.workload, self.demand, self.throughput, self.delays))

    def __hash__(self) -> int:  # cached: specs are looked up for every task in every round
        return self._hash


@quick_pickle
@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job of one or more tasks that run together and depend on each other's speed."""

    name: str
    tasks: tuple[TaskSpec, ...]
    retries: int = 0
    max_duration_ms: int | None = None
    priority: int = 0

    @property
    def spot(self) -> bool:
        """Whether some of it may run on spot."""
        return any(task.demand.spot for task in self.tasks)
