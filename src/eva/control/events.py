"""What happens to the controller: the only way to change its state.

Everything that comes from a worker carries the task's epoch, the number of the placement that it
speaks of. Late and duplicate events are normal: the handlers ignore what no longer matters.
"""

from __future__ import annotations

from dataclasses import dataclass

from eva.model.catalog import InstanceType
from eva.model.ids import InstanceId, JobId, TaskId
from eva.model.jobs import JobSpec
from eva.model.plan import ClusterPlan


@dataclass(frozen=True, slots=True)
class JobSubmitted:
    """A job was accepted. A second submission under the same id is ignored."""

    job: JobId
    spec: JobSpec


@dataclass(frozen=True, slots=True)
class JobCancelled:
    job: JobId


@dataclass(frozen=True, slots=True)
class RoundDue:
    """The scheduling period is over."""


@dataclass(frozen=True, slots=True)
class PlanComputed:
    """The answer to `ComputePlan`. It may come late: it is checked against the state found."""

    round: int
    plan: ClusterPlan


@dataclass(frozen=True, slots=True)
class PlanFailed:
    """No answer to `ComputePlan` will come; the next round asks again."""

    round: int
    reason: str


@dataclass(frozen=True, slots=True)
class InstanceAcquired:
    """The cloud gave the instance: billing starts. `at_ms` is the cloud's own time, if told."""

    instance: InstanceId
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class InstanceReady:
    """The worker on the instance registered: tasks can start."""

    instance: InstanceId


@dataclass(frozen=True, slots=True)
class LaunchRefused:
    """There will be no such instance, and nothing to pay for it.

    `type_refused`: it was about the type, so that another one may do. If not, nothing would do
    until somebody has mended what the reason says.
    """

    instance: InstanceId
    reason: str
    type_refused: bool = True


@dataclass(frozen=True, slots=True)
class CatalogChanged:
    """What can be rented, and for how much, from now on. What runs keeps its price.

    `unfit` says why no migration that only saves money may rest on these prices, if so.
    """

    types: tuple[InstanceType, ...]
    unfit: str = ""


@dataclass(frozen=True, slots=True)
class InstanceLost:
    """The cloud says that the instance is gone without having been asked: billing ends."""

    instance: InstanceId
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class InstanceTerminated:
    """The cloud says that the instance is gone as asked: billing ends."""

    instance: InstanceId
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class InstanceUnreachable:
    """The worker went silent for too long. Its tasks may still run, until the cloud says not."""

    instance: InstanceId


@dataclass(frozen=True, slots=True)
class SpotNotice:
    """The cloud will take the instance back at the deadline."""

    instance: InstanceId
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class TaskStarted:
    task: TaskId
    epoch: int


@dataclass(frozen=True, slots=True)
class TaskStartFailed:
    """The task never ran. `infrastructure` failures are not the job's fault."""

    task: TaskId
    epoch: int
    reason: str
    infrastructure: bool = False


@dataclass(frozen=True, slots=True)
class TaskCheckpointed:
    """Proof of stop: progress is saved and the resources are free."""

    task: TaskId
    epoch: int


@dataclass(frozen=True, slots=True)
class CheckpointFailed:
    """The task did not stop; it keeps running where it is.

    One copy may be checkpointed more than once until it works, so the epoch is not enough to tell
    whether this is the answer to the last attempt or a late word about an earlier one.
    """

    task: TaskId
    epoch: int
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class TaskStopped:
    """Proof of stop, without a checkpoint."""

    task: TaskId
    epoch: int


@dataclass(frozen=True, slots=True)
class TaskExited:
    """The task ended by itself, which is also proof of stop."""

    task: TaskId
    epoch: int
    exit_code: int


@dataclass(frozen=True, slots=True)
class ThroughputSample:
    """What one task achieves now, in iterations per second; 0 withdraws the last sample."""

    task: TaskId
    epoch: int
    iterations_per_s: float


@dataclass(frozen=True, slots=True)
class ThroughputReported:
    """The samples that changed since the last report."""

    samples: tuple[ThroughputSample, ...]


Event = (
    JobSubmitted
    | JobCancelled
    | RoundDue
    | PlanComputed
    | PlanFailed
    | InstanceAcquired
    | InstanceReady
    | LaunchRefused
    | CatalogChanged
    | InstanceLost
    | InstanceTerminated
    | InstanceUnreachable
    | SpotNotice
    | TaskStarted
    | TaskStartFailed
    | TaskCheckpointed
    | CheckpointFailed
    | TaskStopped
    | TaskExited
    | ThroughputReported
)
