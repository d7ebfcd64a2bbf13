"""Names for things. Ids are text everywhere: what a user reads is what the core compares."""

from __future__ import annotations

from typing import NewType

JobId = NewType("JobId", str)
TaskId = NewType("TaskId", str)
InstanceId = NewType("InstanceId", str)

# The fingerprint under which a task's behaviour is learned: equal fingerprints interfere alike.
Workload = NewType("Workload", str)


def task_id(job: JobId, index: int) -> TaskId:
    """Tasks are numbered within their job: `train-7.0`, `train-7.1`, ..."""
    return TaskId(f"{job}.{index}")
