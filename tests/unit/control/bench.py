"""A controller on the bench: events by hand, commands by kind, invariants after each."""

from __future__ import annotations

from typing import TypeVar

from eva.control.commands import Command, ComputePlan, LaunchInstance, StartTask
from eva.control.controller import Controller
from eva.control.events import (
    Event,
    InstanceAcquired,
    InstanceReady,
    JobSubmitted,
    PlanComputed,
    RoundDue,
    TaskStarted,
)
from eva.control.invariants import check_everything
from eva.control.settings import ControllerSettings
from eva.control.state import Job, Task
from eva.model.catalog import Catalog, InstanceType
from eva.model.ids import InstanceId, JobId, TaskId, Workload
from eva.model.jobs import JobSpec, StandaloneThroughput, TaskSpec
from eva.model.plan import ClusterPlan, Decision, PlannedInstance
from eva.model.resources import Demand, Resources
from eva.model.snapshot import ClusterSnapshot

BIG = InstanceType("big", "p3", Resources(2, 16_000, 64_000), 6_000_000)
SMALL = InstanceType("small", "p3", Resources(1, 8_000, 32_000), 3_000_000)
CATALOG = Catalog("bench", (BIG, SMALL))
ONE_GPU = Demand.of(1, 4, 8)
STATED = StandaloneThroughput(10.0)

_Kind = TypeVar("_Kind")
Placement = tuple[InstanceType | str, tuple[str, ...]]  # a new one by type, a present one by id


class Bench:
    """Turns the crank by hand. Time goes on by one second with every event."""

    def __init__(self, settings: ControllerSettings | None = None) -> None:
        self.controller = Controller(CATALOG, settings)
        self.state = self.controller.state
        self.now_ms = 0
        self.journal: list[tuple[int, Event]] = []
        self.snapshot: ClusterSnapshot | None = None

    def send(self, *events: Event) -> list[Command]:
        commands: list[Command] = []
        for event in events:
            self.now_ms += 1_000
            self.journal.append((self.now_ms, event))
            commands += self.controller.handle(event, self.now_ms)
            check_everything(self.state)
        for command in commands:
            if isinstance(command, ComputePlan):
                self.snapshot = command.snapshot
        return commands

    def submit(
        self, name: str, tasks: int = 1, throughput: StandaloneThroughput = STATED, **rest: int
    ) -> Job:
        spec = TaskSpec(Workload(name), ONE_GPU, throughput)
        self.send(JobSubmitted(JobId(name), JobSpec(name, (spec,) * tasks, **rest)))
        return self.job(name)

    def round(self, *placements: Placement, chosen: str = "partial") -> list[Command]:
        """A round and its plan; what the adoption of the plan commands."""
        self.send(RoundDue())
        return self.adopt(*placements, chosen=chosen)

    def adopt(self, *placements: Placement, chosen: str = "partial") -> list[Command]:
        planned = [self._planned(where, tasks) for where, tasks in placements]
        plan = ClusterPlan(tuple(planned), decision=Decision(chosen))
        return self.send(PlanComputed(self.state.round, plan))

    def ready(self, *instances: str) -> list[Command]:
        return [
            command
            for name in instances
            for command in self.send(
                InstanceAcquired(InstanceId(name)), InstanceReady(InstanceId(name))
            )
        ]

    def running(self, *placements: Placement) -> None:
        """Have a plan carried out until every task that it places runs."""
        launched = of(LaunchInstance, self.round(*placements))
        starts = of(StartTask, self.ready(*(command.instance for command in launched)))
        for start in starts:
            self.send(TaskStarted(start.task, start.epoch))

    def job(self, name: str) -> Job:
        return self.state.jobs[JobId(name)]

    def task(self, name: str) -> Task:
        return self.state.tasks[TaskId(name)]

    def _planned(self, where: InstanceType | str, tasks: tuple[str, ...]) -> PlannedInstance:
        ids = tuple(TaskId(name) for name in tasks)
        if isinstance(where, InstanceType):
            return PlannedInstance(where, ids)
        instance = self.state.instances[InstanceId(where)]
        return PlannedInstance(instance.type, ids, instance.id)


def of(kind: type[_Kind], commands: list[Command]) -> list[_Kind]:
    return [command for command in commands if isinstance(command, kind)]
