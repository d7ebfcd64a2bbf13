"""Global storage in a directory: of this machine, or of a network mount that all instances share.

Tasks work right in it, so nothing is copied. A checkpoint is complete when the manifest in its
folder verifies, whoever wrote it. Tasks own what is in their folders and are not trusted with it:
no path is followed out of the root, and where a link stands in a folder's place it is refused.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from eva_iterator.errors import CheckpointError
from eva_iterator.manifest import MANIFEST_NAME, checkpoint_path, verify_manifest

from eva.adapters.local_files import (
    last_change_ms,
    remove_tree,
    sync,
    sync_checkpoint,
    typed_file_errors,
    usage_of,
)
from eva.adapters.storage_layout import (
    epoch_name,
    job_name,
    parse_epoch,
    shared_name,
    task_name,
    workdir_name,
)
from eva.adapters.workdir_archive import digest_of, pack, unpack
from eva.model.ids import JobId, TaskId
from eva.ports.storage import (
    Checkpoint,
    CheckpointIncompleteError,
    Incomplete,
    Placement,
    Retention,
    StorageAccessError,
    TaskFolders,
    Usage,
    WorkdirDigest,
    WorkdirMissingError,
    complete_ones,
    to_prune,
)

_PARTIAL = ".partial-"
_PARTIAL_KEPT_S = 24 * 3_600  # an upload that takes longer than this was abandoned


class DirectoryStorage:
    """`eva.ports.storage.Storage` in a directory."""

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.abspath(root))  # noqa: PTH100  a link to the root itself is fine

    def check(self) -> None:
        with typed_file_errors(f"writing to {self._root}"):
            self._root.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._root, prefix=".check-") as probe:
                probe.write(b"Eva was here")
                probe.flush()
                os.fsync(probe.fileno())

    # The user's workdir

    def stage_workdir(self, source: Path) -> WorkdirDigest:
        with typed_file_errors(f"storing {source} in {self._root}"):
            folder = self._made("workdirs")
            self._drop_abandoned(folder)
            with tempfile.NamedTemporaryFile(dir=folder, prefix=_PARTIAL, delete=False) as content:
                partial = Path(content.name)
                try:
                    digest = pack(source, content)
                    content.flush()
                    os.fsync(content.fileno())
                    target = self._inside(workdir_name(digest))
                    if not _holds(target, digest):
                        partial.replace(target)
                finally:
                    partial.unlink(missing_ok=True)
            sync(folder)
            return digest

    def fetch_workdir(self, digest: WorkdirDigest, target: Path) -> None:
        stored = self._inside(workdir_name(digest))
        if not stored.is_file():
            raise WorkdirMissingError(
                f"the workdir {digest} is not in {self._root}: submit the job again"
            )
        with typed_file_errors(f"unpacking {stored} to {target}"), stored.open("rb") as content:
            unpack(content, digest, target)

    # A placement's folders

    def open_task(self, placement: Placement, scratch: Path) -> TaskFolders:  # noqa: ARG002  nothing is copied here
        with typed_file_errors(f"making the folders of {placement.task} in {self._root}"):
            job_dir = self._made(shared_name(placement.job))
            checkpoint_dir = self._made(epoch_name(placement))
        restored = self.latest_complete_checkpoint(placement.job, placement.task)
        restore_dir = None
        if restored is not None:
            restore_dir = self._inside(task_name(placement.job, placement.task)) / restored.key
        return TaskFolders(job_dir, checkpoint_dir, restore_dir, restored)

    def save_job_dir(self, placement: Placement, scratch: Path) -> None:
        """The task wrote where it belongs."""

    def close_task(self, placement: Placement, scratch: Path) -> None:
        """There is nothing to let go of."""

    # Checkpoints

    def publish_checkpoint(self, placement: Placement, folder: Path) -> Checkpoint:
        base = self._inside(epoch_name(placement))
        relative = os.path.relpath(folder, base)
        try:
            checkpoint_path(base, relative)
            manifest = verify_manifest(folder)
        except CheckpointError as error:
            raise CheckpointIncompleteError(str(error)) from error
        with typed_file_errors(f"syncing {folder}"):
            sync_checkpoint(folder, manifest)
            sync(base)
        return Checkpoint(
            placement,
            _key(base.name, relative),
            manifest.step,
            manifest.written_at_ms,
            manifest.size_bytes,
        )

    def checkpoints(self, job: JobId, task: TaskId) -> tuple[Checkpoint, ...]:
        return complete_ones(self._standing(job, task))

    def latest_complete_checkpoint(self, job: JobId, task: TaskId) -> Checkpoint | None:
        return next(iter(self.checkpoints(job, task)), None)

    def prune(
        self, job: JobId, task: TaskId, retention: Retention, now_ms: int, live_epoch: int
    ) -> tuple[str, ...]:
        keys = to_prune(self._standing(job, task), retention, now_ms, live_epoch)
        folder = self._inside(task_name(job, task))
        with typed_file_errors(f"removing old checkpoints in {folder}"):
            for key in keys:
                _remove(folder / key)
            self._drop_empty_epochs(folder, live_epoch)
        return keys

    # All of a job

    def usage(self, job: JobId) -> Usage:
        with typed_file_errors(f"measuring {job} in {self._root}"):
            return usage_of(self._inside(job_name(job)))

    def remove_job(self, job: JobId) -> None:
        with typed_file_errors(f"removing {job} from {self._root}"):
            remove_tree(self._inside(job_name(job)))

    # Paths

    def _inside(self, name: str) -> Path:
        """A path of ours; refused if a link stands anywhere on the way."""
        path = self._root
        for part in name.split("/"):
            path /= part
            if path.is_symlink():
                raise StorageAccessError(
                    f"{path} is a link, and a folder of Eva's should be there: remove the link, "
                    "and see who could have put it there"
                )
        return path

    def _made(self, name: str) -> Path:
        path = self._inside(name)
        path.mkdir(parents=True, exist_ok=True)
        return self._inside(name)

    def _drop_abandoned(self, folder: Path) -> None:
        for partial in folder.glob(f"{_PARTIAL}*"):
            with suppress(FileNotFoundError):  # another writer was done with it meanwhile
                if time.time() - partial.stat().st_mtime > _PARTIAL_KEPT_S:
                    partial.unlink()

    # What stands in a task's folder

    def _epochs(self, folder: Path) -> Iterator[tuple[int, Path]]:
        for child in sorted(folder.iterdir()) if folder.is_dir() else ():
            epoch = parse_epoch(child.name)
            if epoch is not None and child.is_dir() and not child.is_symlink():
                yield epoch, child

    def _standing(self, job: JobId, task: TaskId) -> Iterator[Checkpoint | Incomplete]:
        folder = self._inside(task_name(job, task))
        with typed_file_errors(f"looking for checkpoints in {folder}"):
            for epoch, base in self._epochs(folder):
                yield from _in_epoch(Placement(job, task, epoch), base)

    def _drop_empty_epochs(self, folder: Path, live_epoch: int) -> None:
        for epoch, base in self._epochs(folder):
            if epoch < live_epoch and not any(base.iterdir()):
                base.rmdir()


def _in_epoch(placement: Placement, base: Path) -> Iterator[Checkpoint | Incomplete]:
    """The complete checkpoints of a placement, and the beginnings of others beside them."""
    complete = list(_complete_below(placement, base))
    yield from complete
    if any(each.key == base.name for each in complete):
        return  # the whole folder is one checkpoint
    for child in sorted(base.iterdir()):
        key = _key(base.name, child.name)
        if not any(each.key == key or each.key.startswith(f"{key}/") for each in complete):
            yield Incomplete(placement, key, last_change_ms([child]))


def _complete_below(placement: Placement, base: Path) -> Iterator[Checkpoint]:
    for inner, folders, names in os.walk(base):
        if MANIFEST_NAME not in names:
            continue
        try:
            manifest = verify_manifest(inner, contents=False)
        except CheckpointError:
            continue  # incomplete, as good as none; there may be complete ones further down
        folders.clear()
        key = _key(base.name, os.path.relpath(inner, base))
        yield Checkpoint(placement, key, manifest.step, manifest.written_at_ms, manifest.size_bytes)


def _remove(checkpoint: Path) -> None:
    if checkpoint.is_dir() and not checkpoint.is_symlink():
        # The manifest first: what is half removed must not pass for complete.
        (checkpoint / MANIFEST_NAME).unlink(missing_ok=True)
    remove_tree(checkpoint)


def _key(epoch: str, relative: str) -> str:
    return epoch if relative == "." else f"{epoch}/{relative}"


def _holds(stored: Path, digest: WorkdirDigest) -> bool:
    if not stored.is_file():
        return False
    with stored.open("rb") as content:
        return digest_of(content) == digest
