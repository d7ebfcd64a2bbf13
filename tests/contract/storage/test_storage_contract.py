"""What every global storage promises, be it a directory or a bucket."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from eva_iterator.manifest import write_manifest

from eva.model.errors import InputError
from eva.model.ids import JobId, TaskId
from eva.ports.storage import (
    Checkpoint,
    CheckpointIncompleteError,
    Placement,
    Retention,
    Storage,
    TaskFolders,
    Usage,
    WorkdirDigest,
    WorkdirMissingError,
)

JOB = JobId("train-7")
TASK = TaskId("train-7.0")
MIB = 1024 * 1024
LATER_MS = int(time.time() * 1_000) + 60_000  # after everything a test writes


def placed(epoch: int, task: TaskId = TASK) -> Placement:
    return Placement(JOB, task, epoch)


class Machine:
    """An instance: its own scratch folders over the one storage."""

    def __init__(self, storage: Storage, folder: Path) -> None:
        self._storage = storage
        self._folder = folder

    def scratch(self, placement: Placement) -> Path:
        return self._folder / f"{placement.task}-{placement.epoch}"

    def open(self, placement: Placement) -> TaskFolders:
        return self._storage.open_task(placement, self.scratch(placement))

    def save(self, placement: Placement) -> None:
        self._storage.save_job_dir(placement, self.scratch(placement))

    def close(self, placement: Placement) -> None:
        self._storage.close_task(placement, self.scratch(placement))

    def checkpoint(self, placement: Placement, name: str, step: int, text: str) -> Checkpoint:
        """What a task does, and what its worker does after it."""
        folder = self.write(placement, name, text)
        write_manifest(folder, step)
        return self._storage.publish_checkpoint(placement, folder)

    def write(self, placement: Placement, name: str, text: str) -> Path:
        folder = self.open(placement).checkpoint_dir / name
        (folder / "inner").mkdir(parents=True, exist_ok=True)
        (folder / "state.txt").write_text(text)
        (folder / "inner" / "weights.bin").write_bytes(text.encode() * 100)
        return folder


@pytest.fixture
def here(storage: Storage, tmp_path: Path) -> Machine:
    return Machine(storage, tmp_path / "here")


@pytest.fixture
def there(storage: Storage, tmp_path: Path) -> Machine:
    return Machine(storage, tmp_path / "there")


def test_it_can_be_checked_before_it_is_needed(storage: Storage) -> None:
    storage.check()


# Checkpoints


def test_a_task_without_checkpoints_starts_afresh(storage: Storage, here: Machine) -> None:
    folders = here.open(placed(1))
    assert (folders.restore_dir, folders.restored) == (None, None)
    assert list(folders.checkpoint_dir.iterdir()) == []
    assert storage.latest_complete_checkpoint(JOB, TASK) is None


def test_a_checkpoint_is_restored_elsewhere(here: Machine, there: Machine) -> None:
    published = here.checkpoint(placed(1), "step-5", 5, "five")
    folders = there.open(placed(2))
    assert folders.restored == published
    assert folders.restore_dir is not None
    assert (folders.restore_dir / "state.txt").read_text() == "five"
    assert (folders.restore_dir / "inner" / "weights.bin").read_bytes() == b"five" * 100
    assert list(folders.checkpoint_dir.iterdir()) == []
    assert (published.step, published.size_bytes) == (5, 404)


def test_the_whole_checkpoint_folder_may_be_the_checkpoint(here: Machine, there: Machine) -> None:
    here.checkpoint(placed(1), ".", 5, "five")
    folders = there.open(placed(2))
    assert folders.restore_dir is not None
    assert (folders.restore_dir / "state.txt").read_text() == "five"


def test_large_files_come_back_whole(storage: Storage, here: Machine, there: Machine) -> None:
    folder = here.open(placed(1)).checkpoint_dir / "big"
    folder.mkdir()
    content = os.urandom(12 * MIB + 1)
    (folder / "weights.bin").write_bytes(content)
    write_manifest(folder, 1)
    storage.publish_checkpoint(placed(1), folder)
    restore_dir = there.open(placed(2)).restore_dir
    assert restore_dir is not None
    assert (restore_dir / "weights.bin").read_bytes() == content


def test_the_newest_is_of_the_latest_epoch_and_then_of_the_most_steps(
    storage: Storage, here: Machine
) -> None:
    for epoch, step in [(1, 9), (2, 3), (2, 11), (2, 4), (10, 1)]:
        here.checkpoint(placed(epoch), f"s{step}", step, f"{epoch}-{step}")
    order = [(each.placement.epoch, each.step) for each in storage.checkpoints(JOB, TASK)]
    assert order == [(10, 1), (2, 11), (2, 4), (2, 3), (1, 9)]
    latest = storage.latest_complete_checkpoint(JOB, TASK)
    assert latest is not None
    assert latest.placement == placed(10)


def test_tasks_have_their_own_checkpoints(storage: Storage, here: Machine) -> None:
    sibling = TaskId("train-7.1")
    here.checkpoint(placed(1), "a", 1, "mine")
    assert storage.latest_complete_checkpoint(JOB, sibling) is None
    here.checkpoint(placed(1, sibling), "a", 2, "theirs")
    mine = storage.latest_complete_checkpoint(JOB, TASK)
    assert mine is not None
    assert mine.step == 1


def test_what_has_no_manifest_is_not_published(storage: Storage, here: Machine) -> None:
    folder = here.write(placed(1), "half", "half")
    with pytest.raises(CheckpointIncompleteError, match="not complete"):
        storage.publish_checkpoint(placed(1), folder)
    assert storage.latest_complete_checkpoint(JOB, TASK) is None


@pytest.mark.parametrize("how", ["changed", "missing", "longer"])
def test_what_does_not_verify_is_not_published(storage: Storage, here: Machine, how: str) -> None:
    before = here.checkpoint(placed(1), "good", 1, "good")
    folder = here.write(placed(1), "bad", "bad!")
    write_manifest(folder, 2)
    if how == "changed":
        (folder / "state.txt").write_text("BAD!")
    elif how == "missing":
        (folder / "state.txt").unlink()
    else:
        (folder / "state.txt").write_text("bad! and more")
    with pytest.raises(CheckpointIncompleteError, match=r"state\.txt"):
        storage.publish_checkpoint(placed(1), folder)
    (folder / "state.txt").unlink(missing_ok=True)
    assert storage.latest_complete_checkpoint(JOB, TASK) == before


def test_publishing_again_changes_nothing(storage: Storage, here: Machine) -> None:
    first = here.checkpoint(placed(1), "a", 1, "a")
    folder = here.open(placed(1)).checkpoint_dir / "a"
    assert storage.publish_checkpoint(placed(1), folder) == first
    assert storage.checkpoints(JOB, TASK) == (first,)


def test_opening_again_after_a_restart_finds_the_same(here: Machine) -> None:
    here.checkpoint(placed(1), "a", 1, "a")
    first = here.open(placed(2))
    (first.checkpoint_dir / "begun").write_text("begun")
    (first.job_dir / "log").write_text("so far")
    assert here.open(placed(2)) == first
    assert (first.checkpoint_dir / "begun").read_text() == "begun"
    assert (first.job_dir / "log").read_text() == "so far"


# Retention


def test_pruning_keeps_the_newest_complete_ones(storage: Storage, here: Machine) -> None:
    for epoch, step in [(1, 1), (1, 2), (2, 3), (3, 4)]:
        here.checkpoint(placed(epoch), f"s{step}", step, str(step))
    removed = storage.prune(JOB, TASK, Retention(complete=2), LATER_MS, live_epoch=3)
    assert len(removed) == 2
    assert [each.step for each in storage.checkpoints(JOB, TASK)] == [4, 3]
    assert storage.prune(JOB, TASK, Retention(complete=2), LATER_MS, live_epoch=3) == ()
    assert storage.usage(JOB).files == 2 * 3


def test_the_newest_complete_one_is_never_removed(storage: Storage, here: Machine) -> None:
    only = here.checkpoint(placed(1), "a", 1, "a")
    storage.prune(JOB, TASK, Retention(1, incomplete_ms=0), LATER_MS + 10**12, live_epoch=9)
    assert storage.latest_complete_checkpoint(JOB, TASK) == only
    with pytest.raises(InputError, match="at least 1"):
        Retention(complete=0)


def test_pruning_nothing_is_nothing(storage: Storage) -> None:
    assert storage.prune(JOB, TASK, Retention(), LATER_MS, live_epoch=1) == ()


# The shared folder


def test_the_shared_folder_is_seen_from_the_next_instance(here: Machine, there: Machine) -> None:
    first = here.open(placed(1)).job_dir
    (first / "results").mkdir()
    (first / "results" / "a.txt").write_text("a")
    (first / "log").write_text("one\n")
    here.save(placed(1))
    (first / "log").write_text("one\ntwo\n")
    here.close(placed(1))
    second = there.open(placed(2)).job_dir
    assert (second / "results" / "a.txt").read_text() == "a"
    assert (second / "log").read_text() == "one\ntwo\n"


def test_a_task_that_changed_nothing_undoes_nobodys_work(here: Machine, there: Machine) -> None:
    sibling = placed(1, TaskId("train-7.1"))
    (here.open(placed(1)).job_dir / "log").write_text("old")
    here.save(placed(1))
    there.open(sibling)
    (here.open(placed(1)).job_dir / "log").write_text("new!")
    here.save(placed(1))
    there.close(sibling)
    third = placed(3)
    assert (here.open(third).job_dir / "log").read_text() == "new!"


def test_closing_twice_does_no_harm(here: Machine) -> None:
    here.open(placed(1))
    here.close(placed(1))
    here.close(placed(1))


# The workdir


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    folder = tmp_path / "workdir"
    (folder / "src" / "empty").mkdir(parents=True)
    (folder / "train.py").write_text("print('hello')\n")
    (folder / "src" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "src" / "run.sh").chmod(0o755)
    (folder / "latest").symlink_to("src/run.sh")
    (folder / "both").symlink_to("src", target_is_directory=True)
    return folder


def test_a_workdir_comes_back_as_it_was(storage: Storage, workdir: Path, tmp_path: Path) -> None:
    digest = storage.stage_workdir(workdir)
    target = tmp_path / "fetched"
    storage.fetch_workdir(digest, target)
    assert (target / "train.py").read_text() == "print('hello')\n"
    assert os.access(target / "src" / "run.sh", os.X_OK)
    assert not os.access(target / "train.py", os.X_OK)
    assert (target / "src" / "empty").is_dir()
    assert (target / "latest").readlink() == Path("src/run.sh")
    assert (target / "both" / "run.sh").exists()


def test_the_same_content_is_one_workdir_and_another_is_another(
    storage: Storage, workdir: Path
) -> None:
    first = storage.stage_workdir(workdir)
    os.utime(workdir / "train.py", (1, 1))
    assert storage.stage_workdir(workdir) == first
    (workdir / "train.py").write_text("print('world')\n")
    assert storage.stage_workdir(workdir) != first


def test_many_may_stage_the_same_workdir_at_once(
    storage: Storage, workdir: Path, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(6) as pool:
        digests = set(pool.map(lambda _: storage.stage_workdir(workdir), range(6)))
    (digest,) = digests
    storage.fetch_workdir(digest, tmp_path / "fetched")


def test_links_out_of_a_workdir_are_refused_all_at_once(storage: Storage, workdir: Path) -> None:
    (workdir / "passwords").symlink_to("/etc/passwd")
    (workdir / "up").symlink_to("../..")
    with pytest.raises(InputError) as refused:
        storage.stage_workdir(workdir)
    assert [Path(each.where).name for each in refused.value.problems] == ["passwords", "up"]


def test_an_unknown_workdir_says_what_to_do(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(WorkdirMissingError, match="submit the job again"):
        storage.fetch_workdir(WorkdirDigest("0" * 64), tmp_path / "fetched")


def test_a_workdir_is_not_unpacked_over_something_else(
    storage: Storage, workdir: Path, tmp_path: Path
) -> None:
    digest = storage.stage_workdir(workdir)
    with pytest.raises(InputError, match="not empty"):
        storage.fetch_workdir(digest, workdir)


# Names and ends


@pytest.mark.parametrize("name", ["../other", "a/b", "", ".", "..", "a\0b", "x" * 200, "-rf"])
def test_names_that_lead_elsewhere_are_refused(storage: Storage, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot name a folder"):
        storage.open_task(Placement(JobId(name), TASK, 1), tmp_path / "scratch")
    with pytest.raises(InputError, match="cannot name a folder"):
        storage.checkpoints(JOB, TaskId(name))
    with pytest.raises(InputError, match="cannot name a folder"):
        storage.remove_job(JobId(name))
    with pytest.raises(InputError, match="sha256"):
        storage.fetch_workdir(WorkdirDigest(name), tmp_path / "fetched")


def test_usage_counts_and_removal_removes_one_job_alone(storage: Storage, here: Machine) -> None:
    other = Placement(JobId("train-70"), TaskId("train-70.0"), 1)
    for placement in (placed(1), other):
        (here.open(placement).job_dir / "result").write_text("0123456789")
        here.save(placement)
    assert storage.usage(JOB) == Usage(files=1, size_bytes=10)
    storage.remove_job(JOB)
    storage.remove_job(JOB)
    assert storage.usage(JOB) == Usage(0, 0)
    assert storage.usage(other.job) == Usage(files=1, size_bytes=10)
