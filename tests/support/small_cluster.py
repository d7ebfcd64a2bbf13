"""A cluster small enough to write down, and a round-by-round loop to carry plans out in.

The loop knows no time and no delay: what a policy plans is so at once. It shows what a policy does
over several rounds; what that costs is the simulator's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from eva.model.catalog import Catalog, InstanceType
from eva.model.colocation import ThroughputTable
from eva.model.ids import InstanceId, JobId, TaskId, Workload
from eva.model.jobs import TaskSpec
from eva.model.oracle import Oracle
from eva.model.plan import ClusterPlan
from eva.model.resources import Demand, Resources, total
from eva.model.snapshot import ClusterSnapshot, InstanceView, TaskView
from eva.scheduling.policy import SchedulingPolicy

HOUR_MS = 3_600_000


def kind(name: str, gpus: int, cpus: int, memory_gb: int, hourly_micros: int) -> InstanceType:
    return InstanceType(name, "any", Resources(gpus, cpus * 1000, memory_gb * 1024), hourly_micros)


SMALL, MEDIUM, LARGE = kind("s", 0, 4, 16, 100), kind("m", 0, 8, 32, 180), kind("l", 0, 16, 64, 400)
CATALOG = Catalog("small-medium-large", (SMALL, MEDIUM, LARGE))


def spec(workload: str, cpus: float = 4, memory_gb: float = 4, gpus: int = 0) -> TaskSpec:
    return TaskSpec(Workload(workload), Demand.of(gpus, cpus, memory_gb))


def task(
    name: str,
    what: TaskSpec,
    *,
    on: str | None = None,
    job: str | None = None,
    movable: bool = True,
) -> TaskView:
    return TaskView(
        TaskId(name), JobId(job or name), what, None if on is None else InstanceId(on), movable
    )


def snapshot(
    *tasks: TaskView,
    present: Mapping[str, InstanceType] | None = None,
    table: ThroughputTable | None = None,
    oracle: Oracle | None = None,
    catalog: Catalog = CATALOG,
) -> ClusterSnapshot:
    """A snapshot in which instances list the tasks that say they are on them."""
    instances = tuple(
        InstanceView(InstanceId(name), what, tuple(one.id for one in tasks if one.instance == name))
        for name, what in (present or {}).items()
    )
    return ClusterSnapshot(
        0,
        catalog,
        tasks,
        instances,
        table=table or ThroughputTable(),
        oracle=oracle or Oracle(),
    )


def shape(plan: ClusterPlan) -> list[tuple[str | None, str, tuple[str, ...]]]:
    """What a plan says, in a form that is easy to write down: (instance, type, tasks)."""
    return sorted(
        (
            (planned.instance, planned.type.name, tuple(sorted(planned.tasks)))
            for planned in plan.instances
        ),
        key=str,
    )


@dataclass
class Rounds:
    """Carries out a policy's plans, and counts what happens."""

    policy: SchedulingPolicy
    catalog: Catalog = CATALOG
    oracle: Oracle = field(default_factory=Oracle)
    table: ThroughputTable = field(default_factory=ThroughputTable)
    tasks: dict[TaskId, TaskView] = field(default_factory=dict)
    instances: dict[InstanceId, InstanceView] = field(default_factory=dict)
    launched: int = 0
    moves: int = 0

    def round(
        self, *arriving: TaskView, ending: tuple[str, ...] = (), oracle: Oracle | None = None
    ) -> ClusterPlan:
        for name in ending:
            del self.tasks[TaskId(name)]
        self.tasks.update({one.id: one for one in arriving})
        seen = ClusterSnapshot(
            0,
            self.catalog,
            tuple(self.tasks.values()),
            tuple(self.instances.values()),
            table=self.table,
            oracle=oracle or self.oracle,
        )
        plan = self.policy.plan(seen.granting(self.policy.knowledge))
        self._carry_out(plan)
        return plan

    def _carry_out(self, plan: ClusterPlan) -> None:
        self.instances = {}
        for planned in plan.instances:
            name = planned.instance
            if name is None:
                self.launched += 1
                name = InstanceId(f"i{self.launched}")
            self.instances[name] = InstanceView(name, planned.type, planned.tasks)
            for one in planned.tasks:
                before = self.tasks[one]
                self.moves += before.instance not in (None, name)
                self.tasks[one] = replace(before, instance=name)

    @property
    def hourly_micros(self) -> int:
        return sum(view.type.hourly_micros for view in self.instances.values())


def overfull(plan: ClusterPlan, tasks: Mapping[TaskId, TaskView]) -> list[str]:
    """The instances of a plan that do not hold their tasks."""
    found: list[str] = []
    for planned in plan.instances:
        needs = [tasks[one].spec.demand.on(planned.type.family) for one in planned.tasks]
        known = [need for need in needs if need is not None]
        if len(known) < len(needs) or not total(known).fits_in(planned.type.capacity):
            found.append(f"{planned.type.name}: {planned.tasks}")
    return found
