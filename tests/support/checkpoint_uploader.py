"""A process to be killed: publishes a checkpoint to a bucket.

Run as `python -m tests.support.checkpoint_uploader S3_URL SCRATCH`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from eva.adapters.s3 import Bucket, Location, S3Storage
from eva.adapters.s3.access import AccessKind
from eva.model.ids import JobId, TaskId
from eva.ports.storage import Placement


def main() -> None:
    bucket = Bucket(Location.parse(sys.argv[1]), part_bytes=5 * 1024 * 1024)
    storage = S3Storage(bucket, AccessKind.COPY)
    placement = Placement(JobId("train-7"), TaskId("train-7.0"), 2)
    storage.publish_checkpoint(placement, Path(sys.argv[2]))


if __name__ == "__main__":
    main()
