"""A bucket, as far as storage needs one: whole objects under keys, listings, typed failures.

Large files go up and come down in parts; each request is repeated with growing pauses by botocore
before a failure gets here. boto3 is loaded when the first bucket is made, so that Eva without this
extra neither needs nor pays for it.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qs, urlsplit

from eva.adapters.local_files import typed_file_errors
from eva.adapters.s3.failures import typed_s3_errors
from eva.model.errors import InputError, OperatorError
from eva.model.units import MS_PER_SECOND

MIB = 1024 * 1024
PART_BYTES = 16 * MIB
AT_ONCE = 8  # files, or parts of one file, on their way together
ATTEMPTS = 6  # of one request, with pauses that double
DELETED_AT_ONCE = 1_000  # the protocol's limit


@dataclass(frozen=True, slots=True)
class Location:
    """Where a bucket is. `s3://bucket/prefix?endpoint=https://host&region=name` as text."""

    bucket: str
    prefix: str = ""
    endpoint: str | None = None
    region: str | None = None

    @classmethod
    def parse(cls, url: str) -> Location:
        parts = urlsplit(url)
        options = parse_qs(parts.query, keep_blank_values=True)
        unknown = sorted(set(options) - {"endpoint", "region"})
        if parts.scheme != "s3" or not parts.hostname or unknown:
            raise InputError.single(
                "storage",
                f"{url!r} is not a bucket: write s3://BUCKET/PREFIX, and if needed "
                "?endpoint=URL&region=NAME",
            )
        endpoint, region = (options.get(name, [None])[-1] for name in ("endpoint", "region"))
        return cls(parts.netloc, parts.path.strip("/"), endpoint, region)

    def key(self, name: str) -> str:
        return f"{self.prefix}/{name}" if self.prefix else name

    def __str__(self) -> str:
        at = f" at {self.endpoint}" if self.endpoint else ""
        return f"s3://{self.bucket}/{self.prefix}{at}"


@dataclass(frozen=True, slots=True)
class StoredObject:
    name: str  # without the location's prefix
    size_bytes: int
    changed_ms: int


class Bucket:
    """Objects under one location. Names are relative to its prefix. Safe from any thread."""

    def __init__(self, location: Location, part_bytes: int = PART_BYTES) -> None:
        self.location = location
        try:
            boto3 = importlib.import_module("boto3")
            transfer = importlib.import_module("boto3.s3.transfer")
        except ImportError as error:
            raise OperatorError(
                f"{location} needs boto3: pip install 'eva-scheduler[s3]'"
            ) from error
        config = importlib.import_module("botocore.config").Config(
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            connect_timeout=5,
            read_timeout=60,
            max_pool_connections=2 * AT_ONCE,
            # Other endpoints than AWS know neither the new checksums nor bucket host names.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            s3={"addressing_style": "path" if location.endpoint else "auto"},
        )
        with typed_s3_errors(location, "connecting"):
            self._client: Any = boto3.session.Session().client(
                "s3", endpoint_url=location.endpoint, region_name=location.region, config=config
            )
        self._transfer = transfer.TransferConfig(
            multipart_threshold=part_bytes, multipart_chunksize=part_bytes, max_concurrency=AT_ONCE
        )

    def check(self) -> None:
        with typed_s3_errors(self.location, "looking for the bucket"):
            self._client.head_bucket(Bucket=self.location.bucket)

    def put(self, name: str, content: IO[bytes]) -> None:
        """Store what `content` holds from where it stands; the object appears at once, whole."""
        with typed_s3_errors(self.location, f"uploading {name}"):
            self._client.upload_fileobj(
                content, self.location.bucket, self.location.key(name), Config=self._transfer
            )

    def get(self, name: str, target: Path) -> None:
        """Bring an object here, in parts; `target` appears only when it is whole."""
        with (
            typed_s3_errors(self.location, f"downloading {name}"),
            typed_file_errors(f"writing {target}"),
        ):
            target.parent.mkdir(parents=True, exist_ok=True)
            self._client.download_file(
                self.location.bucket, self.location.key(name), str(target), Config=self._transfer
            )

    def size(self, name: str) -> int | None:
        """The size of an object; None if there is none."""
        found = next(self.list(name), None)
        return found.size_bytes if found is not None and found.name == name else None

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Objects whose name begins so, in order of their names."""
        with typed_s3_errors(self.location, f"listing {prefix}"):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self.location.bucket, Prefix=self.location.key(prefix)
            )
            cut = len(self.location.key(""))
            for page in pages:
                for item in page.get("Contents", ()):
                    changed_ms = int(item["LastModified"].timestamp() * MS_PER_SECOND)
                    yield StoredObject(item["Key"][cut:], item["Size"], changed_ms)

    def delete(self, names: Sequence[str]) -> None:
        for start in range(0, len(names), DELETED_AT_ONCE):
            some = names[start : start + DELETED_AT_ONCE]
            with typed_s3_errors(self.location, f"deleting {some[0]} and others"):
                answer = self._client.delete_objects(
                    Bucket=self.location.bucket,
                    Delete={
                        "Objects": [{"Key": self.location.key(name)} for name in some],
                        "Quiet": True,
                    },
                )
            for refused in answer.get("Errors", ()):
                raise OperatorError(
                    f"{self.location} refuses to delete {refused['Key']} ({refused['Code']}): "
                    "check the permission s3:DeleteObject"
                )

    def abort_uploads(self, prefix: str, before_ms: int) -> int:
        """Drop the parts of uploads that began before a time and never ended."""
        aborted = 0
        with typed_s3_errors(self.location, f"dropping unfinished uploads of {prefix}"):
            pages = self._client.get_paginator("list_multipart_uploads").paginate(
                Bucket=self.location.bucket, Prefix=self.location.key(prefix)
            )
            for upload in (each for page in pages for each in page.get("Uploads", ())):
                if upload["Initiated"].timestamp() * MS_PER_SECOND < before_ms:
                    self._client.abort_multipart_upload(
                        Bucket=self.location.bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                    )
                    aborted += 1
        return aborted

    def put_all(self, files: Iterable[tuple[str, Callable[[], IO[bytes]]]]) -> None:
        """Store many; each is opened when its turn comes. The first failure is raised."""
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="s3-upload") as pool:
            for done in [pool.submit(self._put_opened, name, opener) for name, opener in files]:
                done.result()

    def get_all(self, files: Iterable[tuple[str, Path]]) -> None:
        """Bring many here. The first failure is raised."""
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="s3-download") as pool:
            for done in [pool.submit(self.get, name, target) for name, target in files]:
                done.result()

    def _put_opened(self, name: str, opener: Callable[[], IO[bytes]]) -> None:
        with typed_file_errors(f"reading what becomes {name}"), opener() as content:
            self.put(name, content)


def open_plain(path: Path) -> IO[bytes]:
    """A file for reading, refused if it is a link."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
