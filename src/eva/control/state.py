"""Everything that the controller remembers.

A task has up to two places: `instance`, where its copy takes room now, and `home`, where it is
bound. Settled tasks have both equal; a moving task has two; a task that is being stopped for good
has no home. Two promises follow for every instance: the copies on it never exceed its capacity,
and neither do the tasks bound for it. The second makes sure that a task which waits for room gets
it as soon as the others have left.

Finished jobs and gone instances leave the indices, so no event costs more as time goes by. The
caches (`view`, `dirty`) are not part of the state: folding a journal rebuilds them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from enum import Enum

from eva.control.ledger import Ledger
from eva.control.lifecycle import (
    BEING_STOPPED,
    INSTANCE_TABLE,
    JOB_TABLE,
    TASK_TABLE,
    USABLE,
    WITH_COPY,
    InstanceState,
    InstanceStep,
    JobState,
    JobStep,
    TaskState,
    TaskStep,
    illegal,
)
from eva.model.catalog import Catalog, InstanceType
from eva.model.colocation import ThroughputTable
from eva.model.errors import InvariantError
from eva.model.ids import InstanceId, JobId, TaskId, Workload
from eva.model.jobs import JobSpec, TaskSpec
from eva.model.plan import Decision
from eva.model.quick_pickle import quick_pickle
from eva.model.resources import NOTHING, Resources
from eva.model.snapshot import InstanceView, TaskView
from eva.model.units import MS_PER_HOUR

STORY_LENGTH = 24
MS_PER_DAY = 24 * MS_PER_HOUR
_LONGEST_DAYS = 64  # after which nothing is left of anything


class Ending(Enum):
    """What comes after the last copy of a stopping job is gone."""

    REQUEUE = "start again, not the job's fault"
    RETRY = "start again after a failure"
    FAIL = "give up"
    CANCEL = "cancelled by the user"


@dataclass(slots=True, eq=False)
class Instance:
    """One instance from the launch command until the cloud says that it is gone."""

    id: InstanceId
    type: InstanceType
    launched_ms: int
    state: InstanceState = InstanceState.REQUESTED
    ready_ms: int | None = None
    doomed: bool = False  # the cloud takes it back, or it is silent: nothing new comes here
    value_micros: int = 0  # what the last plan thought its tasks are worth, per hour
    copies: dict[TaskId, Task] = field(default_factory=dict)
    used: Resources = NOTHING
    bound: dict[TaskId, Task] = field(default_factory=dict)
    reserved: Resources = NOTHING
    view: InstanceView | None = None
    usable: bool = True  # part of the configuration that is planned for

    @property
    def ready(self) -> bool:
        return self.state is InstanceState.READY

    def step(self, step: InstanceStep) -> None:
        following = INSTANCE_TABLE.get((self.state, step))
        if following is None:
            raise illegal(f"instance {self.id} ({self.type.name})", self.state, step, self.story)
        self.state = following
        self.usable = following in USABLE and not self.doomed

    def doom(self) -> None:
        self.doomed = True
        self.usable = False

    @property
    def story(self) -> str:
        return (
            f"launched at {self.launched_ms} ms, ready at {self.ready_ms} ms, "
            f"copies {list(self.copies)}, bound {list(self.bound)}"
        )

    def shows(self, tasks: tuple[TaskId, ...]) -> bool:
        """Whether these are the tasks that the last snapshot showed, and nothing changed since."""
        return self.view is not None and self.view.tasks == tasks

    def overflows(self) -> bool:
        return not self.reserved.fits_in(self.type.capacity)


@dataclass(slots=True, eq=False)
class Task:
    """One task of a job. `epoch` counts its placements; the first copy has epoch 1."""

    id: TaskId
    job: Job
    spec: TaskSpec
    state: TaskState = TaskState.WAITING
    epoch: int = 0
    attempt: int = 0  # counts checkpoints asked for
    instance: Instance | None = None
    home: Instance | None = None
    origin: Instance | None = None  # where the last copy ran
    reason: str = ""  # why it waits, if there is something to say
    iterations_per_s: float = 0.0  # the last sample of this epoch; 0 when there is none
    steps: deque[tuple[int, TaskStep]] = field(default_factory=lambda: deque(maxlen=STORY_LENGTH))
    view: TaskView | None = None

    def step(self, step: TaskStep, now_ms: int) -> None:
        following = TASK_TABLE.get((self.state, step))
        self.steps.append((now_ms, step))
        if following is None:
            raise illegal(f"task {self.id}", self.state, step, self.story)
        job = self.job
        job.being_stopped += (following in BEING_STOPPED) - (self.state in BEING_STOPPED)
        job.settled += (following in _SETTLED) - (self.state in _SETTLED)
        self.state = following

    @property
    def story(self) -> str:
        steps = ", ".join(f"{step.value} at {at_ms} ms" for at_ms, step in self.steps)
        return f"job {self.job.id} {self.job.state.value}, epoch {self.epoch}, {steps}"

    @property
    def has_copy(self) -> bool:
        return self.state in WITH_COPY

    def demand(self, instance: Instance) -> Resources:
        demand = self.spec.demand.on(instance.type.family)
        if demand is None:
            raise InvariantError(
                f"task {self.id} has no demand on family {instance.type.family!r} of instance "
                f"{instance.id}, yet it was placed there"
            )
        return demand


_SETTLED = frozenset({TaskState.RUNNING, TaskState.DONE})


@dataclass(slots=True, eq=False)
class Job:
    """A live job. `being_stopped` and `settled` count its tasks in those states."""

    id: JobId
    spec: JobSpec
    submitted_ms: int
    tasks: tuple[Task, ...] = ()
    state: JobState = JobState.QUEUED
    ending: Ending | None = None
    being_stopped: int = 0
    settled: int = 0
    done: int = 0
    failures: int = 0  # of its own making: they count against `retries`
    disturbances: int = 0  # failures to start that are not its own, in a row
    not_before_round: int = 0
    urgent: bool = False  # driven from its place: a plan is wanted as soon as it can be placed
    first_start_ms: int | None = None
    migrations: int = 0
    reason: str = ""
    steps: deque[tuple[int, JobStep]] = field(default_factory=lambda: deque(maxlen=STORY_LENGTH))

    def step(self, step: JobStep, now_ms: int) -> None:
        following = JOB_TABLE.get((self.state, step))
        self.steps.append((now_ms, step))
        if following is None:
            raise illegal(f"job {self.id}", self.state, step, self.story)
        self.state = following

    @property
    def story(self) -> str:
        steps = ", ".join(f"{step.value} at {at_ms} ms" for at_ms, step in self.steps)
        return f"submitted at {self.submitted_ms} ms, {steps}"


@quick_pickle
@dataclass(frozen=True, slots=True)
class JobRecord:
    """What remains of a job that is over."""

    job: JobId
    name: str
    state: JobState
    submitted_ms: int
    first_start_ms: int | None
    ended_ms: int
    failures: int
    migrations: int
    reason: str


@dataclass(frozen=True, slots=True)
class Experience:
    """With one family on spot: `running` are up since `since_ms`, `up_ms` is of before.

    While none is up, nothing can be learned, and what once was counts half as much with every day:
    otherwise a bad day would keep everybody away for good.
    """

    interruptions: int = 0
    up_ms: int = 0
    running: int = 0
    since_ms: int = 0

    def at(self, now_ms: int) -> Experience:
        """The same, counted until now."""
        passed_ms = now_ms - self.since_ms
        if self.running:
            return replace(self, up_ms=self.up_ms + self.running * passed_ms, since_ms=now_ms)
        days = min(passed_ms // MS_PER_DAY, _LONGEST_DAYS)
        return replace(
            self,
            interruptions=self.interruptions >> days,
            up_ms=self.up_ms >> days,
            since_ms=self.since_ms + days * MS_PER_DAY,
        )


@dataclass(slots=True, eq=False)
class State:
    """The whole state. Dicts keep the order of arrival, which is part of what is deterministic."""

    table: ThroughputTable
    jobs: dict[JobId, Job] = field(default_factory=dict)
    tasks: dict[TaskId, Task] = field(default_factory=dict)
    instances: dict[InstanceId, Instance] = field(default_factory=dict)
    records: dict[JobId, JobRecord] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    standalone: dict[tuple[Workload, str], float] = field(default_factory=dict)
    spot: dict[str, Experience] = field(default_factory=dict)  # by family on spot
    launches: int = 0
    round: int = 0
    planning: int | None = None  # the round whose plan is being computed
    replan: bool = False  # a plan is wanted at once, or as soon as that one is there
    set_aside: dict[str, int] = field(default_factory=dict)  # refused types, until when
    catalog: Catalog | None = None  # None: the one that the controller was made with
    prices_unfit: str = ""  # why nothing that runs is moved to save money, if so
    began_ms: int | None = None
    now_ms: int = 0
    events: int = 0  # arrivals and completions, behind lambda
    events_asked: int = 0  # of these, known when the last plan was asked for
    events_planned: int = 0  # of these, known to the last plan that was adopted
    full_reconfigurations: int = 0  # behind p
    migrations: int = 0
    decision: Decision | None = None
    decision_round: int = 0
    # caches and work lists
    dirty_tasks: bool = True
    dirty_instances: bool = True
    unobserved: dict[InstanceId, Instance] = field(default_factory=dict)
    limited: dict[JobId, Job] = field(default_factory=dict)  # jobs with a maximal duration
    on_spot: dict[JobId, Job] = field(default_factory=dict)  # jobs that allow it

    # Where tasks are and where they go. Nothing else touches these four sets.

    def bind(self, task: Task, home: Instance | None) -> None:
        """Make `home` the place that the task is bound for, and nowhere else."""
        old = task.home
        if old is home:
            return
        if old is not None:
            del old.bound[task.id]
            old.reserved = old.reserved.minus(task.demand(old))
            old.view = None
        if home is not None:
            home.bound[task.id] = task
            home.reserved = home.reserved.plus(task.demand(home))
            home.view = None
        task.home = home
        self.dirty_tasks = self.dirty_instances = True

    def occupy(self, task: Task, instance: Instance) -> None:
        instance.copies[task.id] = task
        instance.used = instance.used.plus(task.demand(instance))
        task.instance = instance
        self.unobserved[instance.id] = instance

    def vacate(self, task: Task) -> Instance:
        """The copy is gone: on proof of stop only."""
        instance = task.instance
        if instance is None:
            raise InvariantError(f"task {task.id} has no copy to remove. Its story: {task.story}")
        del instance.copies[task.id]
        instance.used = instance.used.minus(task.demand(instance))
        task.origin = instance
        task.instance = None
        task.iterations_per_s = 0.0
        self.unobserved[instance.id] = instance
        return instance
