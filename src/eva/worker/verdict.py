"""What the end of a copy means: a pure judgement of how it ended and of what we had asked of it.

Exit code 0 is always "finished", and CHECKPOINTED_EXIT_CODE always "start me again": a task may say
so unasked. A task that was sent a signal in order to checkpoint has done so if a complete
checkpoint was written since; otherwise it was merely stopped.
"""

from __future__ import annotations

from dataclasses import dataclass

from eva_iterator.protocol import CHECKPOINTED_EXIT_CODE

from eva.ports.runtime import ExitKind, TaskExit
from eva.ports.storage import Checkpoint
from eva.ports.workers import Checkpointed, Exited, Report, StartFailed, Stopped
from eva.worker.stimuli import Ref

# What a shell says of ends that have no code of their own.
_SIGNAL_BASE = 128
_KILLED_CODE = _SIGNAL_BASE + 9
_LOST_CODE = 255


@dataclass(frozen=True, slots=True)
class Ending:
    ref: Ref
    exit: TaskExit
    attempt: int
    asked_ms: int | None
    answered: bool
    signalled: bool
    stopped_by_us: bool
    steps: int | None


def wants_checkpoint(ending: Ending) -> bool:
    """Whether this end may stand for a checkpoint, if one is found complete."""
    if ending.exit.succeeded:
        return False
    said_so = ending.exit.kind is ExitKind.EXITED and ending.exit.code == CHECKPOINTED_EXIT_CODE
    return said_so or ending.answered or ending.signalled


def verdict(ending: Ending, checkpoint: Checkpoint | None, problem: str, now_ms: int) -> Report:
    task, epoch = ending.ref
    end = ending.exit
    if wants_checkpoint(ending):
        if checkpoint is not None:
            took_ms = max(0, now_ms - ending.asked_ms) if ending.asked_ms is not None else 0
            return Checkpointed(
                task, epoch, ending.attempt, checkpoint.key, checkpoint.step, took_ms
            )
        return Stopped(task, epoch, f"{end}, and no complete checkpoint stands: {problem}")
    if end.kind is ExitKind.NEVER_STARTED:
        if ending.stopped_by_us:
            return Stopped(task, epoch, str(end))
        return StartFailed(task, epoch, str(end), infrastructure=False)
    if ending.stopped_by_us and not end.succeeded:
        return Stopped(task, epoch, str(end))
    if end.kind is ExitKind.LOST:
        return Stopped(task, epoch, str(end))  # the machine's failure and not the job's
    return Exited(task, epoch, exit_code(end), end.kind, end.detail, ending.steps)


def exit_code(end: TaskExit) -> int:
    if end.code is not None:
        return end.code
    if end.signal is not None:
        return _SIGNAL_BASE + end.signal
    return _KILLED_CODE if end.kind is ExitKind.OOM_KILLED else _LOST_CODE
