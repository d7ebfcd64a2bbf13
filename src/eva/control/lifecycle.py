"""What may follow what. One table each for jobs, tasks and instances; anything else is a bug.

A state diagram can be drawn from these tables (`mermaid`), and a transition that is not in them
raises an `InvariantError` that tells the thing's story, so that no handler needs to defend itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from eva.model.errors import InvariantError


class JobState(Enum):
    QUEUED = "queued"  # no copy of any task exists
    STARTING = "starting"  # placed at least in part, not all tasks run
    RUNNING = "running"  # all tasks run (or are done), and nothing else is planned
    PREPARING = "preparing"  # runs on its source until the targets of its move are registered
    MOVING = "moving"  # its tasks are being checkpointed
    STOPPING = "stopping"  # its tasks are being stopped; what comes then is its `ending`
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobStep(Enum):
    PLACE = "place"
    ALL_RUN = "all run"
    PREPARE = "prepare"
    MOVE = "move"
    ABANDON = "abandon"
    SETTLE = "settle"
    STOP = "stop"
    UNPLACE = "unplace"
    FINISH = "finish"
    FAIL = "fail"
    CANCEL = "cancel"


class TaskState(Enum):
    WAITING = "waiting"  # no copy exists and no place is found
    ASSIGNED = "assigned"  # no copy exists, bound for an instance
    STARTING = "starting"
    RUNNING = "running"
    CHECKPOINTING = "checkpointing"
    STOPPING = "stopping"
    DONE = "done"


class TaskStep(Enum):
    ASSIGN = "assign"
    UNASSIGN = "unassign"
    START = "start"
    STARTED = "started"
    CHECKPOINT = "checkpoint"
    CHECKPOINT_FAILED = "checkpoint failed"
    STOP = "stop"
    STOPPED = "stopped"
    EXITED = "exited"
    RESET = "reset"


class InstanceState(Enum):
    REQUESTED = "requested"
    ACQUIRED = "acquired"  # paid for, the worker not yet registered
    READY = "ready"
    DRAINING = "draining"  # not in the plan; terminated when its last task has left
    TERMINATING = "terminating"
    GONE = "gone"


class InstanceStep(Enum):
    ACQUIRE = "acquire"
    REGISTER = "register"
    DRAIN = "drain"
    RETAIN = "retain"
    TERMINATE = "terminate"
    VANISH = "vanish"


JobTable = Mapping[tuple[JobState, JobStep], JobState]
TaskTable = Mapping[tuple[TaskState, TaskStep], TaskState]
InstanceTable = Mapping[tuple[InstanceState, InstanceStep], InstanceState]

JOB_TABLE: JobTable = {
    (JobState.QUEUED, JobStep.PLACE): JobState.STARTING,
    (JobState.QUEUED, JobStep.FAIL): JobState.FAILED,
    (JobState.QUEUED, JobStep.CANCEL): JobState.CANCELLED,
    (JobState.STARTING, JobStep.ALL_RUN): JobState.RUNNING,
    (JobState.STARTING, JobStep.UNPLACE): JobState.QUEUED,
    (JobState.STARTING, JobStep.STOP): JobState.STOPPING,
    (JobState.STARTING, JobStep.FINISH): JobState.FINISHED,
    (JobState.RUNNING, JobStep.PREPARE): JobState.PREPARING,
    (JobState.RUNNING, JobStep.STOP): JobState.STOPPING,
    (JobState.RUNNING, JobStep.FINISH): JobState.FINISHED,
    (JobState.PREPARING, JobStep.MOVE): JobState.MOVING,
    (JobState.PREPARING, JobStep.ABANDON): JobState.RUNNING,
    (JobState.PREPARING, JobStep.STOP): JobState.STOPPING,
    (JobState.PREPARING, JobStep.FINISH): JobState.FINISHED,
    (JobState.MOVING, JobStep.SETTLE): JobState.STARTING,
    (JobState.MOVING, JobStep.STOP): JobState.STOPPING,
    (JobState.MOVING, JobStep.FINISH): JobState.FINISHED,
    (JobState.STOPPING, JobStep.UNPLACE): JobState.QUEUED,
    (JobState.STOPPING, JobStep.FINISH): JobState.FINISHED,
    (JobState.STOPPING, JobStep.FAIL): JobState.FAILED,
    (JobState.STOPPING, JobStep.CANCEL): JobState.CANCELLED,
}

TASK_TABLE: TaskTable = {
    (TaskState.WAITING, TaskStep.ASSIGN): TaskState.ASSIGNED,
    (TaskState.ASSIGNED, TaskStep.UNASSIGN): TaskState.WAITING,
    (TaskState.ASSIGNED, TaskStep.START): TaskState.STARTING,
    (TaskState.STARTING, TaskStep.STARTED): TaskState.RUNNING,
    (TaskState.STARTING, TaskStep.STOP): TaskState.STOPPING,
    (TaskState.STARTING, TaskStep.STOPPED): TaskState.WAITING,
    (TaskState.STARTING, TaskStep.EXITED): TaskState.DONE,
    (TaskState.RUNNING, TaskStep.CHECKPOINT): TaskState.CHECKPOINTING,
    (TaskState.RUNNING, TaskStep.STOP): TaskState.STOPPING,
    (TaskState.RUNNING, TaskStep.STOPPED): TaskState.WAITING,
    (TaskState.RUNNING, TaskStep.EXITED): TaskState.DONE,
    (TaskState.CHECKPOINTING, TaskStep.CHECKPOINT_FAILED): TaskState.RUNNING,
    (TaskState.CHECKPOINTING, TaskStep.STOP): TaskState.STOPPING,
    (TaskState.CHECKPOINTING, TaskStep.STOPPED): TaskState.WAITING,
    (TaskState.CHECKPOINTING, TaskStep.EXITED): TaskState.DONE,
    (TaskState.STOPPING, TaskStep.STOPPED): TaskState.WAITING,
    (TaskState.STOPPING, TaskStep.EXITED): TaskState.DONE,
    (TaskState.DONE, TaskStep.RESET): TaskState.WAITING,
}

INSTANCE_TABLE: InstanceTable = {
    (InstanceState.REQUESTED, InstanceStep.ACQUIRE): InstanceState.ACQUIRED,
    (InstanceState.REQUESTED, InstanceStep.REGISTER): InstanceState.READY,
    (InstanceState.REQUESTED, InstanceStep.TERMINATE): InstanceState.TERMINATING,
    (InstanceState.REQUESTED, InstanceStep.VANISH): InstanceState.GONE,
    (InstanceState.ACQUIRED, InstanceStep.REGISTER): InstanceState.READY,
    (InstanceState.ACQUIRED, InstanceStep.TERMINATE): InstanceState.TERMINATING,
    (InstanceState.ACQUIRED, InstanceStep.VANISH): InstanceState.GONE,
    (InstanceState.READY, InstanceStep.DRAIN): InstanceState.DRAINING,
    (InstanceState.READY, InstanceStep.TERMINATE): InstanceState.TERMINATING,
    (InstanceState.READY, InstanceStep.VANISH): InstanceState.GONE,
    (InstanceState.DRAINING, InstanceStep.RETAIN): InstanceState.READY,
    (InstanceState.DRAINING, InstanceStep.TERMINATE): InstanceState.TERMINATING,
    (InstanceState.DRAINING, InstanceStep.VANISH): InstanceState.GONE,
    (InstanceState.TERMINATING, InstanceStep.VANISH): InstanceState.GONE,
}

# A copy of the task exists, or may exist: it takes room on an instance.
WITH_COPY = frozenset(
    {TaskState.STARTING, TaskState.RUNNING, TaskState.CHECKPOINTING, TaskState.STOPPING}
)
BEING_STOPPED = frozenset({TaskState.CHECKPOINTING, TaskState.STOPPING})
TERMINAL = frozenset({JobState.FINISHED, JobState.FAILED, JobState.CANCELLED})
# Part of the configuration that is planned for.
USABLE = frozenset({InstanceState.REQUESTED, InstanceState.ACQUIRED, InstanceState.READY})


def illegal(thing: str, state: Enum, step: Enum, story: str) -> InvariantError:
    return InvariantError(
        f"{thing} is {state.value} and cannot {step.value!r}: a bug in the controller. "
        f"Its story: {story}"
    )


def mermaid(table: JobTable | TaskTable | InstanceTable) -> str:
    """The table as a Mermaid state diagram, for the documentation."""
    lines = [f"    {a.value} --> {b.value}: {step.value}" for (a, step), b in table.items()]
    return "\n".join(["stateDiagram-v2", *lines])
