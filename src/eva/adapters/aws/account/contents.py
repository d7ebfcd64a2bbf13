"""What is in a bucket, and how it is emptied: every version of every object, and broken uploads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eva.adapters.aws.account.api import Api
from eva.model.errors import OperatorError

_AT_ONCE = 1_000  # the protocol's limit
_GONE = frozenset({"NoSuchBucket", "NoSuchUpload", "404"})


@dataclass(frozen=True, slots=True)
class Contents:
    """`objects` counts every version that is kept."""

    objects: int
    size_bytes: int
    uploads: int

    def told(self) -> str:
        if not self.objects and not self.uploads:
            return "empty"
        broken = f" and {self.uploads} unfinished uploads" if self.uploads else ""
        return f"with {self.objects} objects ({_size(self.size_bytes)}){broken}"


def weighed(api: Api, bucket: str) -> Contents:
    with api.doing(f"looking at what is in bucket {bucket}"):
        versions = api.pages("s3", "list_object_versions", "Versions", Bucket=bucket)
        markers = api.pages("s3", "list_object_versions", "DeleteMarkers", Bucket=bucket)
        uploads = api.pages("s3", "list_multipart_uploads", "Uploads", Bucket=bucket)
    return Contents(
        len(versions) + len(markers), sum(each["Size"] for each in versions), len(uploads)
    )


def empty(api: Api, bucket: str) -> None:
    for keys in _batches(api, bucket):
        answer = api.change(
            "s3", "delete_objects", Bucket=bucket, Delete={"Objects": keys, "Quiet": True}
        )
        for refused in answer.get("Errors", ()):
            raise OperatorError(
                f"bucket {bucket} refuses to delete {refused['Key']} ({refused['Code']}): allow "
                "s3:DeleteObject and s3:DeleteObjectVersion, and lift what holds it"
            )
    for upload in api.pages("s3", "list_multipart_uploads", "Uploads", Bucket=bucket):
        asked = {"Bucket": bucket, "Key": upload["Key"], "UploadId": upload["UploadId"]}
        api.remove("s3", "abort_multipart_upload", _GONE, **asked)


def _batches(api: Api, bucket: str) -> Iterator[list[dict[str, Any]]]:
    for field in ("Versions", "DeleteMarkers"):
        found = api.pages("s3", "list_object_versions", field, Bucket=bucket)
        keys = [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in found]
        for start in range(0, len(keys), _AT_ONCE):
            yield keys[start : start + _AT_ONCE]


def _size(size_bytes: int) -> str:
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes} B"
