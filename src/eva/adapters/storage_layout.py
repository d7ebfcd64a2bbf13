"""Where things are in global storage: the same relative names in a folder and in a bucket.

workdirs/<sha256>.tar
jobs/<job>/shared/...
jobs/<job>/checkpoints/<task>/<epoch>/...
"""

from __future__ import annotations

import re

from eva.model.errors import InputError
from eva.model.ids import JobId, TaskId
from eva.ports.storage import Placement, WorkdirDigest, checked_name

EPOCH_DIGITS = 10  # so that names sort as numbers do

_DIGEST = re.compile(r"[0-9a-f]{64}")


def workdir_name(digest: WorkdirDigest) -> str:
    if not _DIGEST.fullmatch(digest):
        raise InputError.single("workdir", f"{digest!r} is not a sha256 in lower-case hex")
    return f"workdirs/{digest}.tar"


def job_name(job: JobId) -> str:
    return f"jobs/{checked_name('job', job)}"


def shared_name(job: JobId) -> str:
    return f"{job_name(job)}/shared"


def task_name(job: JobId, task: TaskId) -> str:
    return f"{job_name(job)}/checkpoints/{checked_name('task', task)}"


def epoch_name(placement: Placement) -> str:
    return f"{task_name(placement.job, placement.task)}/{placement.epoch:0{EPOCH_DIGITS}d}"


def parse_epoch(name: str) -> int | None:
    """The epoch of a folder's name; None for a folder that is not ours."""
    return int(name) if len(name) == EPOCH_DIGITS and name.isdecimal() and name.isascii() else None
