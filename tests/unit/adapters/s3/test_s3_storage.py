"""What is particular to a bucket: failures by remedy, uploads that die, mount or copy."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import ClientError
from eva_iterator.manifest import MANIFEST_NAME, write_manifest

from eva.adapters.s3 import Bucket, Location, S3Storage
from eva.adapters.s3.access import AccessKind, choose_access
from eva.adapters.s3.failures import typed_s3_errors
from eva.model.errors import EvaError, InputError
from eva.model.ids import JobId, TaskId
from eva.ports.storage import (
    Checkpoint,
    CheckpointIncompleteError,
    Placement,
    Retention,
    StorageAccessError,
    StorageFullError,
    StorageUnreachableError,
)

JOB, TASK = JobId("train-7"), TaskId("train-7.0")
PART_BYTES = 5 * 1024 * 1024
NOW_MS = 2_000_000_000_000  # in 2033: everything that a test writes is old
ALL_OLD = Retention(complete=1, incomplete_ms=1)


@pytest.fixture
def bucket(s3_location: Location) -> Bucket:
    return Bucket(s3_location, PART_BYTES)


@pytest.fixture
def storage(bucket: Bucket) -> S3Storage:
    return S3Storage(bucket, AccessKind.COPY)


def published(storage: S3Storage, scratch: Path, epoch: int, step: int) -> Checkpoint:
    placement = Placement(JOB, TASK, epoch)
    folder = storage.open_task(placement, scratch / str(epoch)).checkpoint_dir / f"s{step}"
    folder.mkdir()
    (folder / "state").write_text(f"step {step}")
    write_manifest(folder, step)
    return storage.publish_checkpoint(placement, folder)


# Locations


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("s3://jobs", Location("jobs")),
        ("s3://jobs/a/b/", Location("jobs", "a/b")),
        (
            "s3://jobs/a?endpoint=http://127.0.0.1:9000&region=eu-west-1",
            Location("jobs", "a", "http://127.0.0.1:9000", "eu-west-1"),
        ),
    ],
)
def test_locations_are_urls(url: str, location: Location) -> None:
    assert Location.parse(url) == location


@pytest.mark.parametrize("url", ["jobs", "s3://", "gs://jobs", "s3://jobs?color=red", ""])
def test_what_is_no_location_says_how_to_write_one(url: str) -> None:
    with pytest.raises(InputError, match="s3://BUCKET/PREFIX"):
        Location.parse(url)


# Failures


def test_a_missing_bucket_says_so(s3_location: Location, tmp_path: Path) -> None:
    nowhere = Location("nowhere", endpoint=s3_location.endpoint, region="us-east-1")
    storage = S3Storage(Bucket(nowhere), AccessKind.COPY)
    with pytest.raises(StorageAccessError, match="create the bucket"):
        storage.check()
    with pytest.raises(StorageAccessError, match="does not exist"):
        storage.checkpoints(JOB, TASK)
    (tmp_path / "workdir").mkdir()
    with pytest.raises(StorageAccessError, match="does not exist"):
        storage.stage_workdir(tmp_path / "workdir")


def test_an_upload_to_a_missing_bucket_says_so(s3_location: Location, tmp_path: Path) -> None:
    bucket = Bucket(Location("nowhere", endpoint=s3_location.endpoint, region="us-east-1"))
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageAccessError, match="the bucket does not exist"):
        bucket.put_all([("name", lambda: (tmp_path / "file").open("rb"))])


def test_missing_credentials_say_so(
    s3_location: Location, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(StorageAccessError, match="AWS_ACCESS_KEY_ID"):
        Bucket(s3_location).check()


def test_an_endpoint_that_is_not_there_is_a_reason_to_try_again(
    s3_location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eva.adapters.s3.bucket.ATTEMPTS", 1)
    lost = Bucket(Location(s3_location.bucket, endpoint="http://127.0.0.1:1", region="us-east-1"))
    with pytest.raises(StorageUnreachableError, match="check the endpoint"):
        lost.check()


# Uploads that die


def wait_until(condition: Callable[[], bool], within_s: float = 30) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def test_a_killed_upload_is_never_seen_as_a_checkpoint_and_can_be_taken_up_again(
    storage: S3Storage, s3_location: Location, s3_client: Any, tmp_path: Path
) -> None:
    before = published(storage, tmp_path, 1, 1)
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    for number in range(12):
        (folder / f"part-{number:02d}").write_bytes(os.urandom(PART_BYTES + 1))
    write_manifest(folder, 2)
    prefix = s3_location.key(f"jobs/{JOB}/checkpoints/{TASK}/0000000002/")

    def arrived() -> list[str]:
        listing = s3_client.list_objects_v2(Bucket=s3_location.bucket, Prefix=prefix)
        return [each["Key"] for each in listing.get("Contents", ())]

    url = (
        f"s3://{s3_location.bucket}/{s3_location.prefix}"
        f"?endpoint={s3_location.endpoint}&region={s3_location.region}"
    )
    uploader = subprocess.Popen(
        [sys.executable, "-m", "tests.support.checkpoint_uploader", url, str(folder)]
    )
    try:
        wait_until(lambda: bool(arrived()))
    finally:
        uploader.kill()
        uploader.wait()
    assert 0 < len(arrived()) < 13
    assert not any(key.endswith(MANIFEST_NAME) for key in arrived())
    assert storage.latest_complete_checkpoint(JOB, TASK) == before

    kept = {
        each["Key"]: each["LastModified"]
        for each in s3_client.list_objects_v2(Bucket=s3_location.bucket, Prefix=prefix)["Contents"]
    }
    again = storage.publish_checkpoint(Placement(JOB, TASK, 2), folder)
    assert storage.latest_complete_checkpoint(JOB, TASK) == again
    for key, modified in kept.items():  # what had arrived whole was not sent twice
        head = s3_client.head_object(Bucket=s3_location.bucket, Key=key)
        assert head["LastModified"] == modified


def test_what_dead_uploads_left_is_pruned(
    storage: S3Storage, s3_location: Location, s3_client: Any, tmp_path: Path
) -> None:
    published(storage, tmp_path, 1, 1)
    base = s3_location.key(f"jobs/{JOB}/checkpoints/{TASK}")
    s3_client.put_object(Bucket=s3_location.bucket, Key=f"{base}/0000000002/abc/state", Body=b"x")
    s3_client.put_object(Bucket=s3_location.bucket, Key=f"{base}/0000000003/def/state", Body=b"x")
    s3_client.create_multipart_upload(
        Bucket=s3_location.bucket, Key=f"{base}/0000000002/abc/weights"
    )
    assert storage.prune(JOB, TASK, Retention(), int(time.time() * 1_000), 3) == ()
    assert storage.prune(JOB, TASK, ALL_OLD, NOW_MS, live_epoch=3) == ("0000000002/abc",)
    uploads = s3_client.list_multipart_uploads(Bucket=s3_location.bucket)
    assert uploads.get("Uploads", []) == []
    left = s3_client.list_objects_v2(Bucket=s3_location.bucket, Prefix=f"{base}/")["Contents"]
    epochs = {each["Key"].removeprefix(f"{base}/").split("/")[0] for each in left}
    assert epochs == {"0000000001", "0000000003"}


def test_a_stored_checkpoint_that_was_damaged_is_passed_over(
    storage: S3Storage, s3_location: Location, s3_client: Any, tmp_path: Path
) -> None:
    good = published(storage, tmp_path, 1, 1)
    bad = published(storage, tmp_path, 2, 2)
    key = s3_location.key(f"jobs/{JOB}/checkpoints/{TASK}/{bad.key}/state")
    s3_client.put_object(Bucket=s3_location.bucket, Key=key, Body=b"STEP 2")  # as long as before
    folders = storage.open_task(Placement(JOB, TASK, 3), tmp_path / "3")
    assert folders.restored == good
    assert folders.restore_dir is not None
    assert (folders.restore_dir / "state").read_text() == "step 1"


def test_a_download_that_was_cut_short_is_started_again(storage: S3Storage, tmp_path: Path) -> None:
    published(storage, tmp_path, 1, 1)
    scratch = tmp_path / "2"
    (scratch / "restore").mkdir(parents=True)
    (scratch / "restore" / "state").write_text("st")
    folders = storage.open_task(Placement(JOB, TASK, 2), scratch)
    assert folders.restore_dir is not None
    assert (folders.restore_dir / "state").read_text() == "step 1"


def test_a_task_that_writes_on_while_it_is_uploaded_is_not_published(
    storage: S3Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = Bucket.put_all

    def upload_while_it_changes(self: Bucket, files: Any) -> None:
        upload(self, files)
        (tmp_path / "1" / "checkpoints" / "s1" / "state").write_text("STEP 1")

    monkeypatch.setattr(Bucket, "put_all", upload_while_it_changes)
    with pytest.raises(CheckpointIncompleteError, match="other contents"):
        published(storage, tmp_path, 1, 1)
    assert storage.latest_complete_checkpoint(JOB, TASK) is None


# The shared folder, copied


def test_only_what_changed_goes_back_and_links_never_do(
    storage: S3Storage, s3_location: Location, s3_client: Any, tmp_path: Path
) -> None:
    base = s3_location.key(f"jobs/{JOB}/shared/")
    for name in ("same", "changed", "../escaped", "folder/"):
        s3_client.put_object(Bucket=s3_location.bucket, Key=f"{base}{name}", Body=b"old")
    placement = Placement(JOB, TASK, 1)
    job_dir = storage.open_task(placement, tmp_path / "1").job_dir
    assert sorted(path.name for path in job_dir.iterdir()) == ["changed", "same"]
    assert not (job_dir.parent / "escaped").exists()
    (job_dir / "changed").write_text("new!")
    (job_dir / "passwords").symlink_to("/etc/passwd")
    (job_dir / "etc").symlink_to("/etc", target_is_directory=True)
    # Were it sent back too, it would be whole again.
    s3_client.put_object(Bucket=s3_location.bucket, Key=f"{base}same", Body=b"newer elsewhere")
    storage.close_task(placement, tmp_path / "1")
    listing = s3_client.list_objects_v2(Bucket=s3_location.bucket, Prefix=base)["Contents"]
    sizes = {each["Key"].removeprefix(base): each["Size"] for each in listing}
    assert sizes == {"same": 15, "changed": 4, "../escaped": 3, "folder/": 3}
    assert not (tmp_path / "1").exists()


# Mount or copy


def finds(*names: str) -> Callable[[str], str | None]:
    return lambda name: f"/usr/bin/{name}" if name in names else None


def test_the_access_is_chosen_with_its_reason(tmp_path: Path) -> None:
    fuse = tmp_path / "fuse"
    assert choose_access(None, fuse, finds(), 0).reason == "rclone is not installed"
    assert "may not be used" in choose_access(None, fuse, finds("rclone"), 0).reason
    fuse.write_text("")
    assert choose_access(None, fuse, finds("rclone"), 0).kind is AccessKind.MOUNT
    assert "fusermount3" in choose_access(None, fuse, finds("rclone"), 1_000).reason
    both = finds("rclone", "fusermount3")
    assert choose_access(None, fuse, both, 1_000).kind is AccessKind.MOUNT
    assert choose_access(AccessKind.COPY, fuse, both, 1_000).kind is AccessKind.COPY


def test_a_mount_that_was_asked_for_and_cannot_be_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StorageAccessError, match="rclone is not installed"):
        choose_access(AccessKind.MOUNT, tmp_path / "fuse", finds(), 0)


# Every refusal by its remedy


@pytest.mark.parametrize(
    ("code", "status", "kind", "remedy"),
    [
        ("AccessDenied", 403, StorageAccessError, "s3:ListBucket"),
        ("InvalidAccessKeyId", 403, StorageAccessError, "check the credentials"),
        ("ExpiredToken", 400, StorageAccessError, "renew them"),
        ("PermanentRedirect", 301, StorageAccessError, r"\?region="),
        ("SomethingNew", 400, StorageAccessError, "SomethingNew"),
        ("SlowDown", 503, StorageUnreachableError, "try again"),
        ("SomethingNew", 500, StorageUnreachableError, "try again"),
        ("QuotaExceeded", 403, StorageFullError, "raise the quota"),
        ("InsufficientStorage", 507, StorageFullError, "free space"),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_refusals_are_sorted_by_remedy(
    code: str, status: int, kind: type[EvaError], remedy: str, *, wrapped: bool
) -> None:
    refusal = ClientError(
        {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject"
    )
    raised: Exception = refusal
    if wrapped:
        raised = S3UploadFailedError("failed to upload")
        raised.__cause__ = refusal
    with pytest.raises(kind, match=remedy), typed_s3_errors("s3://jobs", "uploading x"):
        raise raised
