"""A trace in memory: which jobs arrive when, and how much work each brings.

A trace is the truth that only the driver of a simulation knows. What the scheduler may see of a
job is its `spec`; how long it really runs is not in there. Specs are shared between equal tasks
(`SpecPool`), because six thousand jobs come in fewer than a hundred shapes and every look-up of
a price or a class goes by spec.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from eva.model.ids import JobId, Workload
from eva.model.jobs import JobSpec, StandaloneThroughput, TaskDelays, TaskSpec
from eva.model.resources import Demand
from eva.model.units import MS_PER_SECOND


@dataclass(frozen=True, slots=True)
class TaskPhases:
    """How long the steps of starting and stopping a task take, and the image it starts from.

    `build_ms` is skipped where the instance has built `image` before. `init_ms` passes after the
    last task of the job has started and before the job makes progress.
    """

    fetch_ms: int = 0
    build_ms: int = 0
    init_ms: int = 0
    kill_ms: int = 0
    upload_ms: int = 0
    image: str = ""
    shm_mib: int = 0

    @property
    def delays(self) -> TaskDelays:
        """What a scheduler weighs: checkpointing is kill and upload, launching is the rest."""
        return TaskDelays(
            checkpoint_ms=self.kill_ms + self.upload_ms,
            launch_ms=self.fetch_ms + self.build_ms + self.init_ms,
        )


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job: it ends when it has done `total_iterations`, `throughput_per_s` of them at most.

    `duration_ms` is what the trace says the job takes at full throughput. Formats that count
    whole iterations cut the last one off, so the iterations are what a simulation goes by.
    `phases` belong to `spec.tasks`, one each.
    """

    id: JobId
    arrival_ms: int
    duration_ms: int
    spec: JobSpec
    total_iterations: float
    throughput_per_s: float
    phases: tuple[TaskPhases, ...]
    reports_throughput: bool = True

    def __post_init__(self) -> None:
        if len(self.phases) != len(self.spec.tasks) or not self.phases:
            raise ValueError(
                f"job {self.id} has {len(self.spec.tasks)} tasks and phases for {len(self.phases)}"
            )

    @property
    def init_ms(self) -> int:
        """The job goes on when the slowest of its tasks is ready."""
        return max(phases.init_ms for phases in self.phases)

    def lasting(self, duration_ms: int) -> TraceJob:
        """The same job with another duration, and the work that goes with it."""
        work = duration_ms / MS_PER_SECOND * self.throughput_per_s
        return replace(self, duration_ms=duration_ms, total_iterations=work)


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs in order of arrival. `notices` say what reading them left out, for people."""

    name: str
    jobs: tuple[TraceJob, ...]
    notices: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def tasks(self) -> int:
        return sum(len(job.spec.tasks) for job in self.jobs)

    def with_jobs(self, jobs: Iterable[TraceJob]) -> Trace:
        """The same trace with other jobs, put in order of arrival (ties as given)."""
        ordered = tuple(sorted(jobs, key=lambda job: job.arrival_ms))
        return Trace(self.name, ordered, self.notices)

    def first(self, count: int) -> Trace:
        return replace(self, jobs=self.jobs[:count])


_TaskKey = tuple[Workload, Demand, float | None, TaskDelays]


@dataclass(slots=True)
class SpecPool:
    """Makes task and job specs, each distinct one once."""

    _tasks: dict[_TaskKey, TaskSpec] = field(default_factory=dict)
    _jobs: dict[tuple[str, tuple[TaskSpec, ...]], JobSpec] = field(default_factory=dict)

    def task(
        self, workload: Workload, demand: Demand, throughput: float | None, delays: TaskDelays
    ) -> TaskSpec:
        key = (workload, demand, throughput, delays)
        try:
            return self._tasks[key]
        except KeyError:
            stated = StandaloneThroughput(throughput)
            made = self._tasks[key] = TaskSpec(workload, demand, stated, delays)
            return made

    def job(self, name: str, tasks: tuple[TaskSpec, ...]) -> JobSpec:
        key = (name, tasks)
        try:
            return self._jobs[key]
        except KeyError:
            made = self._jobs[key] = JobSpec(name, tasks)
            return made


def gpus_of(demand: Demand) -> int:
    """By how many GPUs a task counts: the most it asks for on any family."""
    amounts = [amount for _, amount in demand.per_family]
    if demand.default is not None:
        amounts.append(demand.default)
    return max(amount.gpus for amount in amounts)
