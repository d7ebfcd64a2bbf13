"""What happens to a worker's state machine, and what it wants done about it.

Every instruction that has an answer names it. Instructions are carried out at least once: after a
restart the machine is rebuilt from what is on disk and what the runtime has, and asks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eva.model.ids import TaskId
from eva.ports.runtime import TaskExit
from eva.ports.storage import Checkpoint
from eva.ports.workers import CheckpointOrder, PrepareOrder, Report, StartOrder, StopOrder
from eva.worker.devices import Devices


class Ref(NamedTuple):
    """A copy: one placement of one task, on this instance."""

    task: TaskId
    epoch: int

    def __str__(self) -> str:
        return f"{self.task} (epoch {self.epoch})"


# --------------------------------------------------------------------------------------- stimuli
@dataclass(frozen=True, slots=True)
class Listens:
    """The task was heard on its socket for the first time: it can be asked for checkpoints."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class Launched:
    """The program runs, or did: its end comes separately."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class LaunchFailed:
    """The program does not run and nothing of it is left."""

    ref: Ref
    reason: str
    infrastructure: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """The task says that its checkpoint stands in the folder `name`."""

    ref: Ref
    name: str


@dataclass(frozen=True, slots=True)
class Declined:
    """The task says that it cannot checkpoint now."""

    ref: Ref
    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """Proof that no process of the copy is left. `steps` is the last count heard of it."""

    ref: Ref
    exit: TaskExit
    steps: int | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """The copy's files are safe. `checkpoint` is the one asked for, or `problem` says why not."""

    ref: Ref
    checkpoint: Checkpoint | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Reports up to this number are on the master's disk."""

    number: int


@dataclass(frozen=True, slots=True)
class MasterHeard:
    """Anything at all from the master. `dead_man_ms` is its word on how long to do without it."""

    dead_man_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Dismissed:
    """The master has no place for this instance any more."""


@dataclass(frozen=True, slots=True)
class SpotNoticeHeard:
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; see `Machine.next_deadline_ms`."""


Stimulus = (
    PrepareOrder
    | StartOrder
    | StopOrder
    | CheckpointOrder
    | Listens
    | Launched
    | LaunchFailed
    | Answered
    | Declined
    | Ended
    | Settled
    | Acknowledged
    | MasterHeard
    | Dismissed
    | SpotNoticeHeard
    | Tick
)


# ---------------------------------------------------------------------------------- instructions
@dataclass(frozen=True, slots=True)
class Prepare:
    order: PrepareOrder


@dataclass(frozen=True, slots=True)
class Launch:
    """Answered by Launched or LaunchFailed."""

    order: StartOrder
    devices: Devices


@dataclass(frozen=True, slots=True)
class CallOffLaunch:
    """Answered as the launch is, the sooner the better."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class AskCheckpoint:
    """Ask over the task's socket. Answered by Answered, Declined, Ended, or not at all."""

    ref: Ref
    request: int
    grace_ms: int


@dataclass(frozen=True, slots=True)
class CancelCheckpoint:
    ref: Ref


@dataclass(frozen=True, slots=True)
class Signal:
    """Answered by Ended, or not at all."""

    ref: Ref
    number: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Answered by Ended, however long it takes."""

    ref: Ref
    signal: int
    grace_ms: int


@dataclass(frozen=True, slots=True)
class Settle:
    """Carry the shared folder back, let go of the storage. Answered by Settled.

    If `publish`, also verify and publish a checkpoint: the one in the folder `name`, or the newest
    complete one that was written at `not_before_ms` or later.
    """

    ref: Ref
    publish: bool = False
    name: str | None = None
    not_before_ms: int = 0


@dataclass(frozen=True, slots=True)
class Tell:
    """Write a report to disk under its number, then send it if the master is there."""

    number: int
    report: Report


@dataclass(frozen=True, slots=True)
class Keep:
    """Write down all there is to know of a copy, so that a restart finds it."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class KeepFloor:
    """Write down that no epoch of the task up to this one may ever start here."""

    task: TaskId
    epoch: int


@dataclass(frozen=True, slots=True)
class Forget:
    """The copy's end is acknowledged: remove what is left of it here."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class ForgetReports:
    """Reports up to this number need not be kept."""

    number: int


@dataclass(frozen=True, slots=True)
class ShutDown:
    """Nothing runs here and nothing will: end, and the machine with us where it is rented."""

    reason: str


Instruction = (
    Prepare
    | Launch
    | CallOffLaunch
    | AskCheckpoint
    | CancelCheckpoint
    | Signal
    | Stop
    | Settle
    | Tell
    | Keep
    | KeepFloor
    | Forget
    | ForgetReports
    | ShutDown
)
Instructions = Sequence[Instruction]
