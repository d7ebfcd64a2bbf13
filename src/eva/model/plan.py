"""What a scheduling policy answers: which instances there should be and which tasks on each."""

from __future__ import annotations

from dataclasses import dataclass, field

from eva.model.catalog import InstanceType
from eva.model.ids import InstanceId, TaskId
from eva.model.quick_pickle import quick_pickle


@quick_pickle
@dataclass(frozen=True, slots=True)
class PlannedInstance:
    """One instance of the plan: a present one to keep (`instance` set) or a new one to launch."""

    type: InstanceType
    tasks: tuple[TaskId, ...]
    instance: InstanceId | None = None
    value_micros: int = 0  # throughput-normalized reservation price of `tasks`, per hour

    @property
    def saving_micros(self) -> int:
        return self.value_micros - self.type.hourly_micros


@quick_pickle
@dataclass(frozen=True, slots=True)
class Unplaceable:
    """A task that no instance type can host, and what it would take."""

    task: TaskId
    reason: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of the configurations that were weighed, in dollars."""

    name: str
    hourly_micros: int
    saving_micros: int  # S: value minus cost, per hour
    migration_micros: int  # M: one-off cost of getting there
    migrated_tasks: int
    launched_instances: int


@dataclass(frozen=True, slots=True)
class Decision:
    """Why this plan: the candidates, and the time over which savings were counted."""

    chosen: str
    candidates: tuple[Candidate, ...] = ()
    horizon_hours: float | None = None  # D-hat; None where the policy weighs nothing
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """A whole configuration. Present instances that it does not name are to be drained."""

    instances: tuple[PlannedInstance, ...]
    unplaceable: tuple[Unplaceable, ...] = ()
    decision: Decision = field(default_factory=lambda: Decision("only"))

    @property
    def hourly_micros(self) -> int:
        """What it costs all told, the risk of interruptions included."""
        return sum(planned.type.hourly_micros for planned in self.instances)

    @property
    def billed_micros(self) -> int:
        return sum(planned.type.billed_micros for planned in self.instances)

    @property
    def risk_micros(self) -> int:
        return self.hourly_micros - self.billed_micros
