"""What the controller wants done. Drivers carry commands out and answer with events.

Every command may be carried out twice (after a crash the journal is folded again), so drivers key
the effects by instance id and by (task, epoch).
"""

from __future__ import annotations

from dataclasses import dataclass

from eva.model.catalog import InstanceType
from eva.model.ids import InstanceId, TaskId
from eva.model.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class ComputePlan:
    """Answered by `PlanComputed` or `PlanFailed`. The driver cuts the oracle to the policy."""

    round: int
    snapshot: ClusterSnapshot


@dataclass(frozen=True, slots=True)
class LaunchInstance:
    """Answered by `InstanceAcquired` then `InstanceReady`, or by `LaunchRefused`."""

    instance: InstanceId
    type: InstanceType


@dataclass(frozen=True, slots=True)
class TerminateInstance:
    """Answered by `InstanceTerminated`, also where the launch had not come through yet."""

    instance: InstanceId


@dataclass(frozen=True, slots=True)
class PrepareTask:
    """Stage image and data of a task that will come here. A hint: there is no answer."""

    task: TaskId
    instance: InstanceId


@dataclass(frozen=True, slots=True)
class StartTask:
    """Answered by `TaskStarted` or `TaskStartFailed`."""

    task: TaskId
    epoch: int
    instance: InstanceId


@dataclass(frozen=True, slots=True)
class CheckpointTask:
    """Answered by `TaskCheckpointed` or `CheckpointFailed`. `attempt` rises with every try."""

    task: TaskId
    epoch: int
    instance: InstanceId
    attempt: int


@dataclass(frozen=True, slots=True)
class StopTask:
    """Answered by `TaskStopped`; progress since the last checkpoint may be lost."""

    task: TaskId
    epoch: int
    instance: InstanceId


Command = (
    ComputePlan
    | LaunchInstance
    | TerminateInstance
    | PrepareTask
    | StartTask
    | CheckpointTask
    | StopTask
)
