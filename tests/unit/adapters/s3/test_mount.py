"""The shared folder mounted by a real rclone over a real FUSE."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eva.adapters.s3 import Bucket, Location, S3Storage
from eva.adapters.s3.access import AccessKind, choose_access
from eva.adapters.s3.mount import RcloneMount, _wait
from eva.model.ids import JobId, TaskId
from eva.ports.storage import Placement, StorageAccessError, StorageUnreachableError
from tests.support.requirements import require

JOB = JobId("train-7")
FIRST = Placement(JOB, TaskId("train-7.0"), 1)
SECOND = Placement(JOB, TaskId("train-7.1"), 1)


@pytest.fixture
def storage(s3_location: Location) -> S3Storage:
    access = choose_access()
    require(access.kind is AccessKind.MOUNT, f"a mount: {access.reason}")
    return S3Storage(Bucket(s3_location), AccessKind.MOUNT)


@pytest.fixture
def scratch(storage: S3Storage, tmp_path: Path) -> Iterator[Path]:
    """Nothing stays mounted, whatever a test did."""
    yield tmp_path
    for placement, folder in ((FIRST, "first"), (SECOND, "second")):
        storage._mount(placement, tmp_path / folder).unmount()


def stored(client: Any, location: Location) -> dict[str, bytes]:
    prefix = location.key(f"jobs/{JOB}/shared/")
    listing = client.list_objects_v2(Bucket=location.bucket, Prefix=prefix)
    return {
        each["Key"].removeprefix(prefix): client.get_object(
            Bucket=location.bucket, Key=each["Key"]
        )["Body"].read()
        for each in listing.get("Contents", ())
    }


def test_what_a_task_writes_is_saved_and_seen_by_others(
    storage: S3Storage, scratch: Path, s3_client: Any, s3_location: Location
) -> None:
    job_dir = storage.open_task(FIRST, scratch / "first").job_dir
    (job_dir / "results").mkdir()
    (job_dir / "results" / "a.txt").write_text("a")
    with (job_dir / "log").open("a") as log:
        log.write("one\n")
    storage.save_job_dir(FIRST, scratch / "first")
    assert stored(s3_client, s3_location) == {"results/a.txt": b"a", "log": b"one\n"}

    other = storage.open_task(SECOND, scratch / "second").job_dir
    assert (other / "results" / "a.txt").read_text() == "a"
    (other / "log").unlink()
    storage.close_task(SECOND, scratch / "second")
    assert stored(s3_client, s3_location) == {"results/a.txt": b"a"}


def test_closing_saves_unmounts_and_leaves_nothing_running(
    storage: S3Storage, scratch: Path, s3_client: Any, s3_location: Location
) -> None:
    job_dir = storage.open_task(FIRST, scratch / "first").job_dir
    pid = json.loads((scratch / "first" / "mount" / "process.json").read_text())["pid"]
    (job_dir / "late").write_bytes(b"late" * 100_000)
    storage.close_task(FIRST, scratch / "first")
    assert stored(s3_client, s3_location) == {"late": b"late" * 100_000}
    assert not (scratch / "first").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_restarted_worker_finds_the_mount_again(storage: S3Storage, scratch: Path) -> None:
    first = storage.open_task(FIRST, scratch / "first")
    whereabouts = (scratch / "first" / "mount" / "process.json").read_text()
    assert storage.open_task(FIRST, scratch / "first") == first
    assert (scratch / "first" / "mount" / "process.json").read_text() == whereabouts


def test_a_killed_rclone_is_started_again_with_what_it_had_queued(
    storage: S3Storage, scratch: Path, s3_client: Any, s3_location: Location
) -> None:
    job_dir = storage.open_task(FIRST, scratch / "first").job_dir
    (job_dir / "before").write_text("before")
    # A closed file reaches rclone's queue a moment later; only from there it survives rclone.
    assert _wait(lambda: storage._mount(FIRST, scratch / "first")._queued() == 1, 20_000)
    pid = json.loads((scratch / "first" / "mount" / "process.json").read_text())["pid"]
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    storage.save_job_dir(FIRST, scratch / "first")
    assert stored(s3_client, s3_location) == {"before": b"before"}
    (job_dir / "after").write_text("after")
    storage.close_task(FIRST, scratch / "first")
    assert stored(s3_client, s3_location) == {"before": b"before", "after": b"after"}


def test_a_mount_that_fails_says_what_rclone_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rclone = tmp_path / "bin" / "rclone"
    rclone.parent.mkdir()
    rclone.write_text("#!/bin/sh\necho 'NOTICE: hello'\necho 'FATAL: no such device' >&2\nexit 1\n")
    rclone.chmod(0o755)
    monkeypatch.setenv("PATH", str(rclone.parent), prepend=os.pathsep)
    mount = RcloneMount(Location("b"), "jobs/x/shared", tmp_path / "target", tmp_path / "state")
    with pytest.raises(StorageUnreachableError, match="FATAL: no such device"):
        mount.mount()
    mount.unmount()  # nothing is mounted, and nothing happens
    rclone.unlink()
    monkeypatch.setenv("PATH", str(rclone.parent))
    with pytest.raises(StorageAccessError, match="rclone"):
        mount.mount()
