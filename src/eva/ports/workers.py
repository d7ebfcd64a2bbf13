"""The workers, as the master sees them: orders go out, reports come in.

One rule each way makes it safe to kill either side at any moment.

*Orders* are idempotent, keyed by (task, epoch) and, for checkpoints, the attempt. None is queued
for a worker that is away: whenever one connects, `WorkerListener.joined` is asked for all orders
that are still unanswered, judged by what the worker says it has. So the controller's state is the
only list of what is to be done.

*Reports* are kept on the worker's disk until `WorkerListener.reported` has returned, which says
that they are on the master's disk. They come at least once, each worker's in its order; the
controller ignores what it has heard before.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from signal import SIGTERM
from typing import Protocol

from eva.control import events as ev
from eva.model.errors import EvaError, OperatorError, TryAgainError
from eva.model.ids import InstanceId, JobId, TaskId
from eva.model.resources import NOTHING, Resources
from eva.ports.runtime import (
    LOG_START,
    Argv,
    ExitKind,
    ImageReference,
    LogChunk,
    LogCursor,
    Script,
)
from eva.ports.storage import WorkdirDigest


# -------------------------------------------------------------------------------- what a task is
@dataclass(frozen=True, slots=True)
class DockerfileBuild:
    """An image to build from a Dockerfile in the job's stored workdir."""

    dockerfile: str = "Dockerfile"
    build_args: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CheckpointPolicy:
    """How the job saves its progress, as its owner declared.

    A task that listens on its socket is asked there. One that does not is sent `signal`, if the
    job names one; then a complete manifest must stand when it has ended. A task that does neither
    cannot be checkpointed: the request fails and it stays where it is, unless `restart` says that
    losing its progress is fine. Then it is stopped, to begin again from its last checkpoint or
    from scratch.
    """

    grace_ms: int = 120_000
    signal: int | None = None
    restart: bool = False


@dataclass(frozen=True, slots=True)
class GangPlace:
    """A task's place among the tasks of its job. `network` names a private one, if there is one.

    `node_ips` are by rank; `master_port` is free on the instance of rank 0 by the master's word.
    """

    rank: int = 0
    world_size: int = 1
    node_ips: tuple[str, ...] = ()
    master_port: int = 29_400
    network: str | None = None


@dataclass(frozen=True, slots=True)
class TaskRun:
    """What a task runs and how, as the job defines it: sent along with every start.

    `demand` is what the task may use on the instance it goes to. `env` may hold secrets. `workdir`
    is unpacked for the task to start in. `progress_regex` has one group, the step count, and is
    searched for in every line of output.
    """

    program: Argv | Script | None
    demand: Resources = NOTHING
    image: ImageReference | DockerfileBuild | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    workdir: WorkdirDigest | None = None
    shm_mib: int | None = None
    checkpoint: CheckpointPolicy = CheckpointPolicy()
    progress_regex: str | None = None
    window_ms: int = 600_000
    gang: GangPlace = GangPlace()
    stop_signal: int = SIGTERM
    stop_grace_ms: int = 10_000


# ---------------------------------------------------------------------------------------- orders
@dataclass(frozen=True, slots=True)
class PrepareOrder:
    """Have image and data here. A hint: nothing answers it."""

    job: JobId
    task: TaskId
    run: TaskRun


@dataclass(frozen=True, slots=True)
class StartOrder:
    """Answered by Started or StartFailed, then by what becomes of the task."""

    job: JobId
    task: TaskId
    epoch: int
    run: TaskRun


@dataclass(frozen=True, slots=True)
class CheckpointOrder:
    """Answered by Checkpointed, CheckpointFailed, Stopped (`restart`) or Exited."""

    task: TaskId
    epoch: int
    attempt: int


@dataclass(frozen=True, slots=True)
class StopOrder:
    """Answered by Stopped, also where there is no such copy, and from then on never will be."""

    task: TaskId
    epoch: int


Order = PrepareOrder | StartOrder | CheckpointOrder | StopOrder


# --------------------------------------------------------------------------------------- reports
@dataclass(frozen=True, slots=True)
class Started:
    """`launch_ms`: from the order to the running task."""

    task: TaskId
    epoch: int
    launch_ms: int = 0


@dataclass(frozen=True, slots=True)
class StartFailed:
    task: TaskId
    epoch: int
    reason: str
    infrastructure: bool


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """Progress is on global storage, verified, and nothing of the copy is left.

    `checkpoint_ms`: from the order to the proof of stop.
    """

    task: TaskId
    epoch: int
    attempt: int
    key: str = ""
    step: int | None = None
    checkpoint_ms: int = 0


@dataclass(frozen=True, slots=True)
class CheckpointFailed:
    """The task runs on where it is."""

    task: TaskId
    epoch: int
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """Proof of stop; what was done since the last checkpoint is lost."""

    task: TaskId
    epoch: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Exited:
    """The task ended by itself. `exit_code` is what a shell would say, 128 + the signal's number.

    `steps` is the last count that the task reported.
    """

    task: TaskId
    epoch: int
    exit_code: int
    kind: ExitKind = ExitKind.EXITED
    detail: str = ""
    steps: int | None = None


@dataclass(frozen=True, slots=True)
class SpotNoticed:
    """The cloud told the instance that it takes it back at `deadline_ms`."""

    deadline_ms: int


Report = Started | StartFailed | Checkpointed | CheckpointFailed | Stopped | Exited | SpotNoticed


def event_of(instance: InstanceId, report: Report) -> ev.Event:
    """What a report means to the controller."""
    match report:
        case Started(task, epoch):
            return ev.TaskStarted(task, epoch)
        case StartFailed(task, epoch, reason, infrastructure):
            return ev.TaskStartFailed(task, epoch, reason, infrastructure)
        case Checkpointed(task, epoch):
            return ev.TaskCheckpointed(task, epoch)
        case CheckpointFailed(task, epoch, attempt, reason):
            return ev.CheckpointFailed(task, epoch, attempt, reason)
        case Stopped(task, epoch):
            return ev.TaskStopped(task, epoch)
        case Exited(task, epoch, exit_code):
            return ev.TaskExited(task, epoch, exit_code)
        case SpotNoticed(deadline_ms):
            return ev.SpotNotice(instance, deadline_ms)


# ------------------------------------------------------------------------------------ being there
class CopyState(enum.Enum):
    STARTING = "starting"
    RUNNING = "running"
    CHECKPOINTING = "checkpointing"
    STOPPING = "stopping"
    ENDED = "ended"  # its end is among the reports that are still to be acknowledged


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a task that a worker has."""

    task: TaskId
    epoch: int
    state: CopyState


@dataclass(frozen=True, slots=True)
class WorkerHello:
    """A worker introduces itself, at first and after every lost connection.

    `address` is where siblings of its tasks reach it. `unacknowledged` reports follow at once.
    """

    instance: InstanceId
    capacity: Resources
    address: str
    copies: tuple[Copy, ...]
    runtime: str
    version: str
    unacknowledged: int = 0


@dataclass(frozen=True, slots=True)
class TaskSample:
    """How a task fares: steps in all, and steps per second over the user's window, if known."""

    task: TaskId
    epoch: int
    steps: int | None
    rate: float | None


class WorkerListener(Protocol):
    """What the master does about workers. All calls come in the event loop's thread."""

    async def joined(self, hello: WorkerHello) -> Sequence[Order]:
        """A worker is here: every order that it still has to carry out.

        WorkerRefusedError sends it away for good: it stops what it runs, and ends.
        """
        ...

    async def reported(self, instance: InstanceId, report: Report) -> None:
        """Returns when the report is durable; it is acknowledged then, and comes again if not."""
        ...

    def sampled(self, instance: InstanceId, samples: Sequence[TaskSample]) -> None:
        """With every heartbeat: what changed since the last one. May be lost."""
        ...

    def left(self, instance: InstanceId) -> None:
        """The connection is gone, or silent for too long. Its tasks may run on."""
        ...


class Workers(Protocol):
    """What the master needs in order to reach workers. Adapter: grpc."""

    async def serve(self, listener: WorkerListener) -> None:
        """Begin to accept workers; returns when they can connect."""
        ...

    def send(self, instance: InstanceId, order: Order) -> None:
        """Pass an order on if the worker is connected; if not, `joined` will be asked."""
        ...

    def connected(self) -> tuple[InstanceId, ...]: ...

    def dismiss(self, instance: InstanceId) -> None:
        """Never speak to this instance again: its tokens and certificates are void from now on."""
        ...

    def bootstrap(self, instance: InstanceId) -> str:
        """What an instance must be given at launch to find us and be let in: with a new token."""
        ...

    def logs(
        self,
        instance: InstanceId,
        task: TaskId,
        epoch: int,
        cursor: LogCursor = LOG_START,
        *,
        follow: bool = True,
    ) -> AsyncIterator[LogChunk]:
        """A task's output. WorkerAwayError when not connected, or no longer."""
        ...

    async def close(self) -> None:
        """Stop listening. Workers go on and come back."""
        ...


# ---------------------------------------------------------------------------------------- errors
class WorkerAwayError(TryAgainError):
    """The worker is not connected."""


class WorkerRefusedError(OperatorError):
    """This worker has no place here; it is told so, and ends."""


class NoSuchCopyError(EvaError):
    """The worker has no such copy: it never came there, or its end was acknowledged long ago."""
