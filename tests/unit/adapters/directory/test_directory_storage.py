"""What is particular to the directory: links, half-written folders, a full or foreign disk."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest
from eva_iterator.manifest import MANIFEST_NAME, write_manifest

from eva.adapters.directory import DirectoryStorage
from eva.adapters.local_files import typed_file_errors
from eva.model.errors import EvaError
from eva.model.ids import JobId, TaskId
from eva.ports.storage import (
    CheckpointIncompleteError,
    Placement,
    Retention,
    StorageAccessError,
    StorageFullError,
    StorageUnreachableError,
    WorkdirMissingError,
)
from tests.support.requirements import require

JOB, TASK = JobId("train-7"), TaskId("train-7.0")
NOW_MS = 2_000_000_000_000  # in 2033: everything that a test writes is old
ALL_OLD = Retention(complete=1, incomplete_ms=1)


@pytest.fixture
def storage(tmp_path: Path) -> DirectoryStorage:
    return DirectoryStorage(tmp_path / "storage")


def placed(epoch: int) -> Placement:
    return Placement(JOB, TASK, epoch)


def checkpoint_dir(storage: DirectoryStorage, epoch: int) -> Path:
    return storage.open_task(placed(epoch), Path("unused")).checkpoint_dir


def written(folder: Path, step: int | None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "state").write_text(str(step))
    if step is not None:
        write_manifest(folder, step)
    return folder


# Half-written folders


def test_a_task_that_made_its_checkpoint_complete_needs_nobody_to_publish_it(
    storage: DirectoryStorage,
) -> None:
    written(checkpoint_dir(storage, 1) / "deep" / "step-3", 3)
    latest = storage.latest_complete_checkpoint(JOB, TASK)
    assert latest is not None
    assert (latest.key, latest.step) == ("0000000001/deep/step-3", 3)


def test_the_previous_one_is_offered_while_a_newer_one_is_half_written(
    storage: DirectoryStorage,
) -> None:
    written(checkpoint_dir(storage, 1) / "a", 1)
    half = written(checkpoint_dir(storage, 1) / "b", 2)
    (half / "state").write_text("longer than it was")
    written(checkpoint_dir(storage, 2) / "c", None)
    folders = storage.open_task(placed(3), Path("unused"))
    assert folders.restore_dir == checkpoint_dir(storage, 1) / "a"


def test_old_incomplete_ones_are_pruned_and_the_live_placement_is_left_alone(
    storage: DirectoryStorage,
) -> None:
    complete = written(checkpoint_dir(storage, 1) / "a", 1)
    stale = written(checkpoint_dir(storage, 2) / "b", None)
    loose = checkpoint_dir(storage, 2) / "loose"
    loose.write_text("")
    live = written(checkpoint_dir(storage, 3) / "c", None)
    assert storage.prune(JOB, TASK, Retention(), int(stale.stat().st_mtime * 1_000), 3) == ()
    removed = storage.prune(JOB, TASK, ALL_OLD, NOW_MS, live_epoch=3)
    assert removed == ("0000000002/b", "0000000002/loose")
    assert complete.exists()
    assert live.exists()
    assert not stale.parent.exists()


def test_an_empty_folder_of_the_live_placement_survives_pruning(
    storage: DirectoryStorage,
) -> None:
    live = checkpoint_dir(storage, 3)
    storage.prune(JOB, TASK, ALL_OLD, NOW_MS, live_epoch=3)
    assert live.is_dir()


def test_pruning_that_was_interrupted_leaves_no_half_checkpoint_that_passes(
    storage: DirectoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = written(checkpoint_dir(storage, 1) / "a", 1)
    written(checkpoint_dir(storage, 2) / "b", 2)

    def interrupted(path: Path) -> None:
        raise OSError(errno.EIO, "pulled the plug", str(path))

    monkeypatch.setattr("eva.adapters.directory.storage.remove_tree", interrupted)
    with pytest.raises(StorageUnreachableError):
        storage.prune(JOB, TASK, ALL_OLD, NOW_MS, live_epoch=2)
    assert old.exists()
    assert [each.step for each in storage.checkpoints(JOB, TASK)] == [2]


# Links and escapes


@pytest.mark.parametrize("part", ["jobs", "jobs/train-7", "jobs/train-7/shared"])
def test_a_link_in_the_place_of_our_folder_is_refused(
    storage: DirectoryStorage, tmp_path: Path, part: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("precious")
    link = tmp_path / "storage" / part
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    with pytest.raises(StorageAccessError, match="is a link"):
        storage.open_task(placed(1), Path("unused"))
    if part != "jobs/train-7/shared":
        with pytest.raises(StorageAccessError, match="is a link"):
            storage.remove_job(JOB)
    else:
        storage.remove_job(JOB)
    assert (outside / "precious").read_text() == "precious"


def test_removing_and_pruning_never_follow_links_that_a_task_made(
    storage: DirectoryStorage, tmp_path: Path
) -> None:
    victim = written(tmp_path / "victim", 1)
    folders = storage.open_task(placed(1), Path("unused"))
    (folders.job_dir / "link").symlink_to(victim, target_is_directory=True)
    (folders.checkpoint_dir / "link").symlink_to(victim, target_is_directory=True)
    assert storage.checkpoints(JOB, TASK) == ()  # nor is what it names taken for ours
    storage.prune(JOB, TASK, ALL_OLD, NOW_MS, live_epoch=2)
    assert not (folders.checkpoint_dir / "link").is_symlink()
    storage.remove_job(JOB)
    assert (victim / "state").exists()
    assert (victim / MANIFEST_NAME).exists()


def test_only_folders_of_the_placement_can_be_published(
    storage: DirectoryStorage, tmp_path: Path
) -> None:
    outside = written(tmp_path / "outside", 1)
    inside = checkpoint_dir(storage, 1)
    (inside / "link").symlink_to(outside, target_is_directory=True)
    other_epoch = written(checkpoint_dir(storage, 2) / "a", 1)
    for folder in (outside, inside / "link", inside / ".." / ".." / "x", other_epoch):
        with pytest.raises(CheckpointIncompleteError, match="leads out"):
            storage.publish_checkpoint(placed(1), folder)


# Disks


def test_a_damaged_workdir_is_told_and_mended_by_staging_again(
    storage: DirectoryStorage, tmp_path: Path
) -> None:
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    (workdir / "a").write_text("a")
    digest = storage.stage_workdir(workdir)
    (tmp_path / "storage" / "workdirs" / f"{digest}.tar").write_bytes(b"rotten")
    with pytest.raises(WorkdirMissingError, match="other bytes"):
        storage.fetch_workdir(digest, tmp_path / "fetched")
    assert storage.stage_workdir(workdir) == digest
    storage.fetch_workdir(digest, tmp_path / "fetched")
    assert (tmp_path / "fetched" / "a").read_text() == "a"


def test_abandoned_uploads_are_cleared_away(storage: DirectoryStorage, tmp_path: Path) -> None:
    folder = tmp_path / "storage" / "workdirs"
    folder.mkdir(parents=True)
    for name, age in [(".partial-old", 1_000), (".partial-new", None)]:
        (folder / name).write_text("")
        if age is not None:
            os.utime(folder / name, (age, age))
    (tmp_path / "workdir").mkdir()
    digest = storage.stage_workdir(tmp_path / "workdir")
    assert {path.name for path in folder.iterdir()} == {".partial-new", f"{digest}.tar"}


def test_a_full_disk_keeps_no_half_workdir(tmp_path: Path) -> None:
    require(os.geteuid() == 0, "root, to mount a small file system")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], check=False, capture_output=True
    )
    require(mounted.returncode == 0, "the right to mount a tmpfs")
    try:
        storage = DirectoryStorage(disk)
        workdir = tmp_path / "workdir"
        workdir.mkdir()
        (workdir / "big").write_bytes(bytes(2 * 1024 * 1024))
        with pytest.raises(StorageFullError, match="free some"):
            storage.stage_workdir(workdir)
        assert list((disk / "workdirs").iterdir()) == []
        (workdir / "big").write_bytes(bytes(1024))
        storage.stage_workdir(workdir)
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_root_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageAccessError, match="check that the folder exists"):
        DirectoryStorage(tmp_path / "file" / "storage").check()


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StorageFullError),
        (errno.EDQUOT, StorageFullError),
        (errno.ESTALE, StorageUnreachableError),
        (errno.ENOTCONN, StorageUnreachableError),
        (errno.EACCES, StorageAccessError),
        (errno.EROFS, StorageAccessError),
    ],
)
def test_failures_of_the_disk_are_sorted_by_remedy(number: int, kind: type[EvaError]) -> None:
    with pytest.raises(kind, match="while trying"), typed_file_errors("trying"):
        raise OSError(number, os.strerror(number))
