"""Global storage: what outlives an instance and is seen from all of them.

It holds three things. The *shared folder* of a job (`$EVA_JOB_DIR`). The *workdir* that a user
submitted, stored once per content. And *checkpoints*, each belonging to one placement, that is a
task and an epoch, and complete only from the moment its manifest stands: a half-written one is
never offered for restoring, whoever was killed in the middle of writing it.

The manifest is that of `eva_iterator.manifest`, because it is the user's task that writes it.
Calls block; a driver with an event loop runs them in threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NewType, Protocol

from eva.model.errors import EvaError, InputError, OperatorError, TryAgainError
from eva.model.ids import JobId, TaskId

WorkdirDigest = NewType("WorkdirDigest", str)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")  # a folder of its own, on any storage


@dataclass(frozen=True, slots=True)
class Placement:
    """One placement of one task; its epoch rises with every new one."""

    job: JobId
    task: TaskId
    epoch: int

    def __post_init__(self) -> None:
        if self.epoch < 0:
            raise InputError.single("epoch", f"{self.epoch} is negative: epochs count from 0")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint. `key` tells it from the others of its placement."""

    placement: Placement
    key: str
    step: int | None
    written_at_ms: int
    size_bytes: int

    @property
    def age_order(self) -> tuple[int, int, int, str]:
        """Later placements are newer; within one, more steps, then the later clock."""
        step = -1 if self.step is None else self.step
        return (self.placement.epoch, step, self.written_at_ms, self.key)


@dataclass(frozen=True, slots=True)
class Incomplete:
    """The beginnings of a checkpoint, last touched at `changed_ms`."""

    placement: Placement
    key: str
    changed_ms: int


@dataclass(frozen=True, slots=True)
class TaskFolders:
    """The folders of one placement on this machine, as the task is told of them."""

    job_dir: Path  # $EVA_JOB_DIR
    checkpoint_dir: Path  # $EVA_CHECKPOINT_DIR, for this epoch
    restore_dir: Path | None  # where the checkpoint to start from stands, verified
    restored: Checkpoint | None


@dataclass(frozen=True, slots=True)
class Retention:
    """What pruning keeps: the newest complete ones, and recent incomplete ones."""

    complete: int = 2
    incomplete_ms: int = 24 * 3_600_000

    def __post_init__(self) -> None:
        if self.complete < 1:
            raise InputError.single(
                "retention.complete", f"{self.complete}: keep at least 1, the newest"
            )


@dataclass(frozen=True, slots=True)
class Usage:
    files: int
    size_bytes: int


class Storage(Protocol):
    """What master and worker need of global storage. Adapters: directory, s3."""

    def check(self) -> None:
        """Raise if it cannot be used, saying why: for start-up and for `eva doctor`."""
        ...

    # The user's workdir
    def stage_workdir(self, source: Path) -> WorkdirDigest:
        """Store a folder, unless one of the same content is there already."""
        ...

    def fetch_workdir(self, digest: WorkdirDigest, target: Path) -> None:
        """Unpack a stored workdir into a folder that does not exist yet, or is empty."""
        ...

    # A placement's folders
    def open_task(self, placement: Placement, scratch: Path) -> TaskFolders:
        """Its folders, the latest complete checkpoint among them. `scratch` is local and its own.

        May be called again for the same placement, as by a worker that restarted.
        """
        ...

    def save_job_dir(self, placement: Placement, scratch: Path) -> None:
        """Carry changes of the shared folder back. Safe to repeat."""
        ...

    def close_task(self, placement: Placement, scratch: Path) -> None:
        """`save_job_dir`, then let go of mounts and copies. The task must have stopped."""
        ...

    # Checkpoints
    def publish_checkpoint(self, placement: Placement, folder: Path) -> Checkpoint:
        """Verify a folder under `checkpoint_dir` against its manifest and make it durable.

        CheckpointIncompleteError if it does not verify; then it is not offered for restoring.
        """
        ...

    def checkpoints(self, job: JobId, task: TaskId) -> tuple[Checkpoint, ...]:
        """The complete ones, newest first."""
        ...

    def latest_complete_checkpoint(self, job: JobId, task: TaskId) -> Checkpoint | None:
        """The newest of them."""
        ...

    def prune(
        self, job: JobId, task: TaskId, retention: Retention, now_ms: int, live_epoch: int
    ) -> tuple[str, ...]:
        """Remove what `retention` does not keep; the keys removed.

        The newest complete checkpoint stays whatever happens, and so does the folder that the
        placement of `live_epoch` writes into.
        """
        ...

    # All of a job
    def usage(self, job: JobId) -> Usage:
        """What a job takes up."""
        ...

    def remove_job(self, job: JobId) -> None:
        """Remove all of a job; nothing happens if there is none."""
        ...


class StorageFullError(OperatorError):
    """No space is left, there or here."""


class StorageAccessError(OperatorError):
    """Bucket, folder, credentials or permissions are not as they must be."""


class StorageUnreachableError(TryAgainError):
    """The storage does not answer."""


class CheckpointIncompleteError(EvaError):
    """What was to be published or restored does not verify. The task goes on where it is."""


class WorkdirMissingError(OperatorError):
    """A workdir was asked for that is not stored, or whose stored bytes have changed."""


def checked_name(kind: str, name: str) -> str:
    """`name`, if it can be a folder of its own; otherwise it might lead somewhere else."""
    if not _NAME.fullmatch(name):
        raise InputError.single(
            kind,
            f"{name!r} cannot name a folder: use letters, digits, dots, dashes and underscores, "
            "beginning with a letter or digit, at most 128",
        )
    return name


def complete_ones(standing: Iterable[Checkpoint | Incomplete]) -> tuple[Checkpoint, ...]:
    """Those of what stands in a storage that can be restored, the newest first."""
    complete = (each for each in standing if isinstance(each, Checkpoint))
    return tuple(sorted(complete, key=lambda each: each.age_order, reverse=True))


def to_prune(
    standing: Iterable[Checkpoint | Incomplete],
    retention: Retention,
    now_ms: int,
    live_epoch: int,
) -> tuple[str, ...]:
    """The keys that retention lets go, oldest first. One rule for every storage."""
    found = tuple(standing)
    dropped: list[Checkpoint | Incomplete] = [*complete_ones(found)[retention.complete :]]
    dropped += [
        each
        for each in found
        if isinstance(each, Incomplete)
        and each.placement.epoch != live_epoch
        and now_ms - each.changed_ms >= retention.incomplete_ms
    ]
    dropped.sort(key=lambda each: (each.placement.epoch, each.key))
    return tuple(each.key for each in dropped)
