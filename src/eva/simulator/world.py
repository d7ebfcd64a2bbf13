"""What physically exists in the simulated cloud, whatever the controller believes.

The world has checks of its own: two copies of one task, more copies than an instance holds, or an
instance switched off under a running task are bugs even where the controller's books look fine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from eva.model.catalog import InstanceType
from eva.model.errors import InvariantError
from eva.model.ids import InstanceId, JobId, TaskId
from eva.model.jobs import TaskSpec
from eva.model.resources import NOTHING, Resources
from eva.traces.trace import TaskPhases, TraceJob


class Phase(Enum):
    LAUNCHING = "fetching and building"
    RUNNING = "running"
    LEAVING = "being stopped"


@dataclass(slots=True, eq=False)
class Copy:
    """One placement of one task."""

    task: TaskId
    epoch: int
    job: WorldJob
    index: int
    instance: WorldInstance
    spec: TaskSpec
    phases: TaskPhases
    demand: Resources
    share: float  # of the instance: the largest of its resources
    phase: Phase = Phase.LAUNCHING
    speed: float = 1.0  # normalized throughput among its neighbours
    must_stop: bool = False  # stopped for good: no failing checkpoint keeps it


@dataclass(slots=True, eq=False)
class WorldInstance:
    """One instance, from the launch command until it is gone."""

    id: InstanceId
    type: InstanceType
    launched_ms: int
    acquired_ms: int | None = None
    ready_ms: int | None = None
    ended_ms: int | None = None
    terminating: bool = False
    silent: bool = False
    interrupted: bool = False
    images: set[str] = field(default_factory=set)
    prepared: dict[TaskId, int] = field(default_factory=dict)
    copies: dict[TaskId, Copy] = field(default_factory=dict)
    used: Resources = NOTHING
    # measures, kept by the recorder
    accounted_ms: int = 0
    hosted: int = 0
    task_ms: int = 0
    running_ms: int = 0
    speed_ms: float = 0.0
    used_ms: list[int] = field(default_factory=lambda: [0, 0, 0])
    spent_ms: dict[str, float] = field(default_factory=dict)

    @property
    def gone(self) -> bool:
        return self.ended_ms is not None


@dataclass(slots=True, eq=False)
class WorldJob:
    """The truth about a job: how much is left to do, in milliseconds at full throughput."""

    trace: TraceJob
    remaining_ms: float
    saved_ms: float  # what is left according to the last checkpoint
    rate: float = 0.0
    since_ms: int = 0
    version: int = 0  # counts changes of pace: outdated completions are recognised by it
    copies: dict[int, Copy] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    progressing: bool = False
    rolled_back: bool = False
    running_since_ms: int | None = None
    ran_ms: int = 0
    stops: int = 0

    @property
    def id(self) -> JobId:
        return self.trace.id


@dataclass(slots=True, eq=False)
class World:
    jobs: dict[JobId, WorldJob] = field(default_factory=dict)
    owners: dict[TaskId, tuple[WorldJob, int]] = field(default_factory=dict)
    instances: dict[InstanceId, WorldInstance] = field(default_factory=dict)
    copies: dict[TaskId, Copy] = field(default_factory=dict)
    ended: list[WorldInstance] = field(default_factory=list)

    def put(self, copy: Copy) -> None:
        other = self.copies.get(copy.task)
        if other is not None:
            raise InvariantError(
                f"task {copy.task} is started on {copy.instance.id} (epoch {copy.epoch}) while "
                f"its copy of epoch {other.epoch} is {other.phase.value} on {other.instance.id}"
            )
        for sibling in copy.job.copies.values():
            if sibling.phase is Phase.LEAVING:
                raise InvariantError(
                    f"task {copy.task} is started while its sibling {sibling.task} is still "
                    f"being stopped on {sibling.instance.id}"
                )
        instance = copy.instance
        instance.used = instance.used.plus(copy.demand)
        if not instance.used.fits_in(instance.type.capacity):
            raise InvariantError(
                f"instance {instance.id} ({instance.type.name}: {instance.type.capacity}) is given "
                f"{instance.used}: {[*instance.copies, copy.task]}"
            )
        instance.copies[copy.task] = copy
        instance.hosted += 1
        self.copies[copy.task] = copy
        copy.job.copies[copy.index] = copy
        copy.job.done.discard(copy.index)

    def remove(self, copy: Copy) -> None:
        instance = copy.instance
        instance.used = instance.used.minus(copy.demand)
        del instance.copies[copy.task]
        del self.copies[copy.task]
        del copy.job.copies[copy.index]
