"""The cluster as a scheduling policy sees it: frozen, complete, and all it may look at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from eva.model.catalog import Catalog, InstanceType
from eva.model.colocation import ThroughputTable
from eva.model.ids import InstanceId, JobId, TaskId
from eva.model.jobs import TaskSpec
from eva.model.oracle import NO_ORACLE, Knowledge, Oracle
from eva.model.quick_pickle import quick_pickle


@quick_pickle
@dataclass(frozen=True, slots=True)
class TaskView:
    """A live task. `instance` is where it runs or is bound for; None while it waits.

    A task that is starting or moving is not `movable`: it stays where it is in any plan.
    """

    id: TaskId
    job: JobId
    spec: TaskSpec
    instance: InstanceId | None = None
    movable: bool = True


@quick_pickle
@dataclass(frozen=True, slots=True)
class InstanceView:
    """An instance that is paid for or being launched, and not on its way out."""

    id: InstanceId
    type: InstanceType
    tasks: tuple[TaskId, ...] = ()


@quick_pickle
@dataclass(frozen=True, slots=True)
class EventStatistics:
    """Counts behind the estimates of lambda and p: job arrivals and completions are events.

    `news` counts those since the last plan was adopted. Without any, a full reconfiguration of
    the same tasks has been weighed already.
    """

    events: int = 0
    full_reconfigurations: int = 0
    observed_ms: int = 0
    news: int = 1


@dataclass(frozen=True)
class ClusterSnapshot:
    """Everything that `plan(snapshot)` may depend on."""

    now_ms: int
    catalog: Catalog
    tasks: tuple[TaskView, ...] = ()
    instances: tuple[InstanceView, ...] = ()
    table: ThroughputTable = field(default_factory=ThroughputTable)
    statistics: EventStatistics = field(default_factory=EventStatistics)
    oracle: Oracle = NO_ORACLE

    def granting(self, knowledge: Iterable[Knowledge]) -> ClusterSnapshot:
        """The same snapshot with the oracle cut down to what a policy declares."""
        return replace(self, oracle=self.oracle.granted(knowledge))
