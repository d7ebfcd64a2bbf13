"""Global storage in a bucket.

A bucket has no folders to work in, so each placement has a scratch folder on its machine:

    job/         $EVA_JOB_DIR: mounted, or copied here and back
    checkpoints/ $EVA_CHECKPOINT_DIR, always local
    restore/     the checkpoint to start from, downloaded and verified

A checkpoint is published under a key made of its manifest's own digest, its files first and the
manifest last. So nothing that was complete is ever written over, an upload that was killed can be
taken up again, and before the manifest is there nobody takes the rest for a checkpoint.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from eva_iterator.errors import CheckpointError
from eva_iterator.manifest import MANIFEST_NAME, Manifest, read_manifest, verify_manifest

from eva.adapters.local_files import remove_tree, typed_file_errors
from eva.adapters.s3.access import AccessKind, choose_access
from eva.adapters.s3.bucket import Bucket, StoredObject, open_plain
from eva.adapters.s3.mount import RcloneMount
from eva.adapters.s3.shared_copy import SharedCopy
from eva.adapters.storage_layout import (
    epoch_name,
    job_name,
    parse_epoch,
    shared_name,
    task_name,
    workdir_name,
)
from eva.adapters.workdir_archive import pack, unpack
from eva.model.ids import JobId, TaskId
from eva.ports.storage import (
    Checkpoint,
    CheckpointIncompleteError,
    Incomplete,
    Placement,
    Retention,
    TaskFolders,
    Usage,
    WorkdirDigest,
    WorkdirMissingError,
    complete_ones,
    to_prune,
)

PUBLICATION_DIGITS = 16  # of the manifest's sha256


class S3Storage:
    """`eva.ports.storage.Storage` in a bucket. `access` None takes what the machine allows."""

    def __init__(self, bucket: Bucket, access: AccessKind | None = None) -> None:
        self._bucket = bucket
        self.access = choose_access(access)
        self._manifests: dict[str, Manifest] = {}  # by key, which is made of the content

    def check(self) -> None:
        self._bucket.check()

    # The user's workdir

    def stage_workdir(self, source: Path) -> WorkdirDigest:
        with (
            typed_file_errors(f"packing {source}"),
            tempfile.TemporaryFile(prefix="eva-workdir-") as content,
        ):
            digest = pack(source, content)
            size_bytes = content.seek(0, 2)
            if self._bucket.size(workdir_name(digest)) != size_bytes:
                content.seek(0)
                self._bucket.put(workdir_name(digest), content)
            return digest

    def fetch_workdir(self, digest: WorkdirDigest, target: Path) -> None:
        name = workdir_name(digest)
        if self._bucket.size(name) is None:
            raise WorkdirMissingError(
                f"the workdir {digest} is not in {self._bucket.location}: submit the job again"
            )
        with (
            typed_file_errors(f"unpacking the workdir {digest} to {target}"),
            tempfile.TemporaryDirectory(prefix="eva-workdir-") as folder,
        ):
            packed = Path(folder) / "workdir.tar"
            self._bucket.get(name, packed)
            with packed.open("rb") as content:
                unpack(content, digest, target)

    # A placement's folders

    def open_task(self, placement: Placement, scratch: Path) -> TaskFolders:
        checkpoint_dir = scratch / "checkpoints"
        with typed_file_errors(f"making the folders of {placement.task} in {scratch}"):
            checkpoint_dir.mkdir(parents=True, exist_ok=True)
        job_dir = scratch / "job"
        if self.access.kind is AccessKind.MOUNT:
            self._mount(placement, scratch).mount()
        else:
            self._copy(placement, scratch).bring()
        for checkpoint in self.checkpoints(placement.job, placement.task):
            restore_dir = scratch / "restore"
            if self._restore(checkpoint, restore_dir):
                return TaskFolders(job_dir, checkpoint_dir, restore_dir, checkpoint)
        return TaskFolders(job_dir, checkpoint_dir, None, None)

    def save_job_dir(self, placement: Placement, scratch: Path) -> None:
        if self.access.kind is AccessKind.MOUNT:
            self._mount(placement, scratch).save()
        else:
            self._copy(placement, scratch).carry_back()

    def close_task(self, placement: Placement, scratch: Path) -> None:
        self.save_job_dir(placement, scratch)
        if self.access.kind is AccessKind.MOUNT:
            self._mount(placement, scratch).unmount()
        with typed_file_errors(f"clearing {scratch}"):
            remove_tree(scratch)

    # Checkpoints

    def publish_checkpoint(self, placement: Placement, folder: Path) -> Checkpoint:
        manifest = _verified(folder)
        raw = (folder / MANIFEST_NAME).read_bytes()
        publication = hashlib.sha256(raw).hexdigest()[:PUBLICATION_DIGITS]
        base = f"{epoch_name(placement)}/{publication}"
        stored = {each.name: each.size_bytes for each in self._bucket.list(f"{base}/")}
        self._bucket.put_all(
            (f"{base}/{entry.path}", partial(open_plain, (folder / entry.path).resolve()))
            for entry in manifest.files
            if stored.get(f"{base}/{entry.path}") != entry.size_bytes
        )
        # A task that went on writing meanwhile has spoilt what was uploaded.
        _verified(folder)
        with (
            typed_file_errors(f"reading the manifest of {folder}"),
            tempfile.TemporaryFile() as out,
        ):
            out.write(raw)
            out.seek(0)
            self._bucket.put(f"{base}/{MANIFEST_NAME}", out)
        key = f"{base.rsplit('/', 2)[1]}/{publication}"
        return _checkpoint(placement, key, manifest)

    def checkpoints(self, job: JobId, task: TaskId) -> tuple[Checkpoint, ...]:
        return complete_ones(self._standing(job, task))

    def latest_complete_checkpoint(self, job: JobId, task: TaskId) -> Checkpoint | None:
        return next(iter(self.checkpoints(job, task)), None)

    def prune(
        self, job: JobId, task: TaskId, retention: Retention, now_ms: int, live_epoch: int
    ) -> tuple[str, ...]:
        keys = to_prune(self._standing(job, task), retention, now_ms, live_epoch)
        base = task_name(job, task)
        for key in keys:
            # The manifest first: what is half removed must not pass for complete.
            self._bucket.delete([f"{base}/{key}/{MANIFEST_NAME}"])
            self._bucket.delete([each.name for each in self._bucket.list(f"{base}/{key}/")])
        self._bucket.abort_uploads(f"{base}/", now_ms - retention.incomplete_ms)
        return keys

    # All of a job

    def usage(self, job: JobId) -> Usage:
        sizes = [each.size_bytes for each in self._bucket.list(f"{job_name(job)}/")]
        return Usage(len(sizes), sum(sizes))

    def remove_job(self, job: JobId) -> None:
        names = [each.name for each in self._bucket.list(f"{job_name(job)}/")]
        manifests_first = sorted(names, key=lambda name: not name.endswith(f"/{MANIFEST_NAME}"))
        self._bucket.delete(manifests_first)

    # Inside

    def _mount(self, placement: Placement, scratch: Path) -> RcloneMount:
        name = shared_name(placement.job)
        return RcloneMount(self._bucket.location, name, scratch / "job", scratch / "mount")

    def _copy(self, placement: Placement, scratch: Path) -> SharedCopy:
        return SharedCopy(
            self._bucket, shared_name(placement.job), scratch / "job", scratch / "copied.json"
        )

    def _standing(self, job: JobId, task: TaskId) -> Iterator[Checkpoint | Incomplete]:
        base = f"{task_name(job, task)}/"
        publications: dict[tuple[int, str], list[StoredObject]] = {}
        for stored in self._bucket.list(base):
            epoch_text, _, rest = stored.name.removeprefix(base).partition("/")
            publication, _, path = rest.partition("/")
            epoch = parse_epoch(epoch_text)
            if epoch is not None and path:
                publications.setdefault((epoch, f"{epoch_text}/{publication}"), []).append(stored)
        for (epoch, key), objects in sorted(publications.items()):
            placement = Placement(job, task, epoch)
            manifest = self._complete(f"{base}{key}/", objects)
            if manifest is None:
                changed_ms = max(each.changed_ms for each in objects)
                yield Incomplete(placement, key, changed_ms)
            else:
                yield _checkpoint(placement, key, manifest)

    def _complete(self, base: str, objects: list[StoredObject]) -> Manifest | None:
        """The manifest, if it is there and all that it names is there in the right size."""
        sizes = {each.name.removeprefix(base): each.size_bytes for each in objects}
        if MANIFEST_NAME not in sizes:
            return None
        manifest = self._manifests.get(base)
        if manifest is None:
            with tempfile.TemporaryDirectory(prefix="eva-manifest-") as folder:
                self._bucket.get(f"{base}{MANIFEST_NAME}", Path(folder) / MANIFEST_NAME)
                try:
                    manifest = read_manifest(folder)
                except CheckpointError:
                    return None
            self._manifests[base] = manifest
        whole = all(sizes.get(entry.path) == entry.size_bytes for entry in manifest.files)
        return manifest if whole else None

    def _restore(self, checkpoint: Checkpoint, target: Path) -> bool:
        """Bring a checkpoint to `target`; False if what came does not verify."""
        placement = checkpoint.placement
        base = f"{task_name(placement.job, placement.task)}/{checkpoint.key}"
        manifest = self._manifests[f"{base}/"]
        if target.exists():
            try:
                if verify_manifest(target) == manifest:
                    return True  # brought here before the worker restarted
            except CheckpointError:
                pass  # half brought here: once more, from the start
        with typed_file_errors(f"bringing {base} to {target}"):
            remove_tree(target)
            target.mkdir(parents=True)
        names = [entry.path for entry in manifest.files] + [MANIFEST_NAME]
        self._bucket.get_all((f"{base}/{name}", target / name) for name in names)
        try:
            return verify_manifest(target) == manifest
        except CheckpointError:
            return False


def _verified(folder: Path) -> Manifest:
    try:
        return verify_manifest(folder)
    except CheckpointError as error:
        raise CheckpointIncompleteError(str(error)) from error


def _checkpoint(placement: Placement, key: str, manifest: Manifest) -> Checkpoint:
    return Checkpoint(placement, key, manifest.step, manifest.written_at_ms, manifest.size_bytes)
