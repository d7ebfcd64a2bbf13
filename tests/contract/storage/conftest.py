"""Every test of the contract runs over every adapter."""

from __future__ import annotations

from pathlib import Path

import pytest

from eva.adapters.directory import DirectoryStorage
from eva.adapters.s3 import Bucket, S3Storage
from eva.adapters.s3.access import AccessKind
from eva.ports.storage import Storage
from tests.support.s3_server import s3_client, s3_endpoint, s3_location

__all__ = ["s3_client", "s3_endpoint", "s3_location"]  # fixtures by being here


@pytest.fixture(params=["directory", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "directory":
        return DirectoryStorage(tmp_path / "storage")
    # Parts of the smallest size that S3 allows, so that a test's files come in several.
    bucket = Bucket(request.getfixturevalue("s3_location"), part_bytes=5 * 1024 * 1024)
    return S3Storage(bucket, AccessKind.COPY)
