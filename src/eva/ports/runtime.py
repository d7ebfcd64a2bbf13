"""The runtime of tasks: what a worker needs in order to have a program run, watched and stopped.

It speaks of tasks, never of containers, so that a process on a laptop, a Docker container and one
day a pod are the same to the worker. Every task is named by (cluster, task, epoch): a placement,
not merely a task, so that two placements of one task can never be taken for each other.

Four promises carry the rest of the system, and the contract suite holds every adapter to them:

- A task outlives the worker. `adopt` after a restart finds all that runs here and all that ended
  meanwhile, with exit codes; nothing is forgotten before `remove`.
- `start` is idempotent per placement, refuses a stale epoch, and refuses a new epoch while an
  older one still runs here.
- `stop` returns only with proof that no process of the task is left; otherwise it raises.
- What is the user's never passes through a shell, unless the user wrote a shell script; that one
  is a file that the shell reads, and nothing is ever pasted into it.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGTERM
from typing import NewType, Protocol

from eva.model.errors import (
    CapacityError,
    EvaError,
    InputError,
    OperatorError,
    Problem,
    TryAgainError,
)
from eva.model.ids import InstanceId, TaskId


# ------------------------------------------------------------------------------------- identity
@dataclass(frozen=True, slots=True, order=True)
class TaskRef:
    """One placement of one task."""

    cluster: str
    task: TaskId
    epoch: int

    def __str__(self) -> str:
        return f"{self.task} (epoch {self.epoch}, cluster {self.cluster})"


@dataclass(frozen=True, slots=True)
class Home:
    """Whose tasks a runtime looks after. Several workers may share one machine."""

    cluster: str
    instance: InstanceId


# ----------------------------------------------------------------------------------- preparation
@dataclass(frozen=True, slots=True)
class ImageReference:
    """An image by name. Pulled if this machine does not have it."""

    reference: str


@dataclass(frozen=True, slots=True)
class ImageBuild:
    """A Dockerfile and its context folder. Built once per cluster and content."""

    context: Path
    dockerfile: str = "Dockerfile"
    build_args: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Staging:
    """A file or folder to copy here before the task needs it; done once per destination."""

    source: Path
    destination: Path


@dataclass(frozen=True, slots=True)
class Preparation:
    """All that can be done before a task has to be interrupted elsewhere.

    `image` None is the machine's own environment, which only some runtimes have.
    """

    image: ImageReference | ImageBuild | None = None
    staging: tuple[Staging, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """The answer to a preparation: `image` is an exact identity, safe from moving tags."""

    image: str | None
    built: bool = False


# ---------------------------------------------------------------------------------------- launch
@dataclass(frozen=True, slots=True)
class Argv:
    """A program and its arguments, exactly as the user gave them."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """A shell script that the user wrote, run as `interpreter FILE`."""

    text: str
    interpreter: str = "/bin/sh"

    def file_text(self) -> str:
        """The script under one line of ours.

        Signals go to all processes of a task. Without a trap the shell would be the first to die
        of them, and with it the container in which the program was writing its checkpoint. With
        these traps the shell waits for the program, then ends (TERM, INT) or goes on (USR1, USR2).
        """
        return f"set -e; trap 'exit 143' TERM; trap 'exit 130' INT; trap : USR1 USR2\n{self.text}\n"


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds of one task; None is no bound of its own."""

    memory_mib: int | None = None
    pids: int | None = 4_096
    shm_mib: int | None = None


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of this machine that the task sees.

    Where it is seen depends on the runtime: at `target`, or, without a file system of the task's
    own, at `source`. `variable` names the environment variable that tells the task the truth.
    """

    source: Path
    target: str
    read_only: bool = False
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class GangNetwork:
    """A private network of the tasks of one job; `alias` is this task's name on it."""

    name: str
    alias: str


@dataclass(frozen=True, slots=True)
class TaskLaunch:
    """Everything about one start. `program` None is the image's own command.

    `cpus` are CPU numbers of this machine, disjoint between tasks by the worker's word, and empty
    for no pinning. `gpus` are UUIDs; a task that asks for none sees none. `network` None is the
    machine's own, unless the task is `alone`: nobody has to find one without siblings, so where the
    runtime can, it only gets out. `env` may hold secrets: adapters keep it off the disk and out
    of messages.
    """

    ref: TaskRef
    program: Argv | Script | None
    prepared: Prepared = Prepared(None)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    limits: Limits = Limits()
    cpus: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    workdir: str | None = None
    network: GangNetwork | None = None
    alone: bool = False
    user: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


# --------------------------------------------------------------------------------------- answers
class TaskPhase(enum.Enum):
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"


class ExitKind(enum.Enum):
    """How a task ended; each calls for a different answer of the scheduler.

    A shell that ended by our trap reports 128 + signal as its code; where a runtime keeps one
    number only (Docker), such codes are read as SIGNALLED.
    """

    EXITED = "exited"  # by itself, with a code
    SIGNALLED = "signalled"  # by a signal, ours or another's
    OOM_KILLED = "oom_killed"  # because it passed its memory limit: the demand is too low
    NEVER_STARTED = "never_started"  # not one instruction of it ran: safe to place again
    LOST = "lost"  # nobody saw the end, but it is over: no process of it is left


@dataclass(frozen=True, slots=True)
class TaskExit:
    """The end of a task. `code` only where EXITED or OOM_KILLED with one, `signal` likewise."""

    kind: ExitKind
    code: int | None = None
    signal: int | None = None
    detail: str = ""
    started_ms: int | None = None
    finished_ms: int | None = None

    @property
    def succeeded(self) -> bool:
        return self.kind is ExitKind.EXITED and self.code == 0

    def __str__(self) -> str:
        how = {
            ExitKind.EXITED: f"exited with code {self.code}",
            ExitKind.SIGNALLED: f"ended by signal {self.signal}",
            ExitKind.OOM_KILLED: "killed at its memory limit",
            ExitKind.NEVER_STARTED: "never started",
            ExitKind.LOST: "ended unseen",
        }[self.kind]
        return f"{how}: {self.detail}" if self.detail else how


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """A task as the runtime sees it; `exit` is set if and only if `phase` is ENDED."""

    ref: TaskRef
    phase: TaskPhase
    exit: TaskExit | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StopProof:
    """The runtime's word that no process of this placement is left, and never will be again."""

    ref: TaskRef
    exit: TaskExit


# A place in a task's output, opaque to all but the adapter that gave it. It stays good across
# reconnects and restarts of the worker.
LogCursor = NewType("LogCursor", str)
LOG_START = LogCursor("")


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Some output, and the cursor from which to go on after it."""

    data: bytes
    cursor: LogCursor


@dataclass(frozen=True, slots=True)
class RuntimeTraits:
    """What a runtime can and cannot do, so that nobody asks it by trying."""

    name: str
    images: bool  # tasks bring their own file system
    mounts: bool  # a mount appears at its target
    networks: bool  # gangs get a network of their own
    hard_limits: bool  # the kernel enforces memory and pids, rather than our sampling


# ------------------------------------------------------------------------------------------ port
class TaskRuntime(Protocol):
    """What runs tasks on one instance. Adapters: process, docker, fake."""

    @property
    def home(self) -> Home: ...

    @property
    def traits(self) -> RuntimeTraits: ...

    async def prepare(self, preparation: Preparation) -> Prepared:
        """Have the image and the data here. Concurrent equal builds are one build."""
        ...

    async def start(self, launch: TaskLaunch) -> TaskStatus:
        """Start a placement, or say how it fares if it was started before.

        A program that cannot be executed is no error here but an exit, NEVER_STARTED. After an
        error that is raised, nothing of the placement exists.
        """
        ...

    async def signal(self, ref: TaskRef, number: int) -> None:
        """Signal the task's process group, as a checkpoint request does. No-op once ended."""
        ...

    async def stop(self, ref: TaskRef, grace_ms: int, number: int = SIGTERM) -> StopProof:
        """Signal, wait up to `grace_ms`, kill; StopUnprovenError rather than a doubtful proof."""
        ...

    async def status(self, ref: TaskRef) -> TaskStatus: ...

    async def wait(self, ref: TaskRef) -> TaskExit: ...

    def logs(
        self, ref: TaskRef, cursor: LogCursor = LOG_START, *, follow: bool = True
    ) -> AsyncIterator[LogChunk]:
        """Output from `cursor` on. With `follow` it ends when the task has, without when it has
        caught up. Output that was rotated away is skipped.
        """
        ...

    async def adopt(self) -> Sequence[TaskStatus]:
        """Every placement of this home that exists here, running or ended, ordered by ref."""
        ...

    async def remove(self, ref: TaskRef) -> None:
        """Forget an ended placement, its output and exit code: they are acknowledged."""
        ...

    async def close(self) -> None:
        """Let go of everything held here. Tasks run on."""
        ...


# ---------------------------------------------------------------------------------------- errors
class ImageNotFoundError(InputError):
    """The image does not exist, or not for us."""


class BuildFailedError(InputError):
    """The user's Dockerfile does not build; `last_lines` is what it said at the end."""

    def __init__(self, problems: Sequence[Problem], last_lines: Sequence[str] = ()) -> None:
        self.last_lines = tuple(last_lines)
        super().__init__(problems)


class UnsupportedError(InputError):
    """This runtime has no such thing."""


class LaunchRefusedError(InputError):
    """The runtime does not take this launch: a mount, a name or a user that does not exist."""


class NoSuchDeviceError(OperatorError):
    """A CPU or GPU that this machine does not have."""


class DiskFullError(CapacityError):
    """No space is left on this machine."""


class RuntimeUnreachableError(TryAgainError):
    """The runtime, or a registry it needs, does not answer. Tasks that run are not affected."""


class RuntimeRefusedError(OperatorError):
    """The runtime answered with an error that has no name of its own here."""


class StillRunningError(TryAgainError):
    """Another epoch of the task runs here, or the task to remove has not ended."""


class StopUnprovenError(TryAgainError):
    """The task was told to stop and killed, and there is still no proof that it is gone."""


class UnknownTaskError(EvaError):
    """No such placement here: never started, or removed."""

    def __init__(self, ref: TaskRef) -> None:
        self.ref = ref
        super().__init__(
            f"task {ref} is not known here: it was never started on this instance, or its end was "
            f"acknowledged and it was removed"
        )


class StaleEpochError(EvaError):
    """A newer epoch of the task has been here: whoever asks lives in the past."""

    def __init__(self, ref: TaskRef, newest_epoch: int) -> None:
        self.ref = ref
        self.newest_epoch = newest_epoch
        super().__init__(
            f"task {ref} is stale: epoch {newest_epoch} has been started here since. "
            f"Drop this command; the master has a newer one"
        )


def check_epochs(ref: TaskRef, known: Sequence[TaskStatus]) -> None:
    """Refuse a start that the placements of the same task on this instance forbid."""
    for status in known:
        if status.ref.epoch > ref.epoch:
            raise StaleEpochError(ref, status.ref.epoch)
        if status.ref.epoch < ref.epoch and status.phase is not TaskPhase.ENDED:
            raise StillRunningError(
                f"task {ref} cannot start here: its epoch {status.ref.epoch} is still "
                f"{status.phase.value}. Stop that one first"
            )


def check_home(ref: TaskRef, home: Home) -> None:
    """Refuse a task of another cluster."""
    if ref.cluster != home.cluster:
        raise UnknownTaskError(ref)
