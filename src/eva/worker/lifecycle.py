"""What may follow what in the life of a copy: one table, as in the controller."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from eva.ports.workers import CopyState


class Phase(Enum):
    STARTING = "starting"  # image, data and folders are fetched, then the program started
    RUNNING = "running"
    CHECKPOINTING = "checkpointing"  # asked, and running on until it answers
    LEAVING = "leaving"  # has answered that its checkpoint stands; makes no further step
    STOPPING = "stopping"
    SETTLING = "settling"  # no process is left; its files are brought to global storage
    ENDED = "ended"  # reported; forgotten once that is acknowledged


class Step(Enum):
    LAUNCHED = "launched"
    FAIL = "fail to start"
    CHECKPOINT = "checkpoint"
    ANSWER = "answer"
    GIVE_UP = "give up the checkpoint"
    STOP = "stop"
    END = "end"
    SETTLE = "settle"


TABLE: Mapping[tuple[Phase, Step], Phase] = {
    (Phase.STARTING, Step.LAUNCHED): Phase.RUNNING,
    (Phase.STARTING, Step.FAIL): Phase.SETTLING,
    (Phase.RUNNING, Step.CHECKPOINT): Phase.CHECKPOINTING,
    (Phase.RUNNING, Step.STOP): Phase.STOPPING,
    (Phase.RUNNING, Step.END): Phase.SETTLING,
    (Phase.CHECKPOINTING, Step.ANSWER): Phase.LEAVING,
    (Phase.CHECKPOINTING, Step.GIVE_UP): Phase.RUNNING,
    (Phase.CHECKPOINTING, Step.STOP): Phase.STOPPING,
    (Phase.CHECKPOINTING, Step.END): Phase.SETTLING,
    (Phase.LEAVING, Step.END): Phase.SETTLING,
    (Phase.STOPPING, Step.END): Phase.SETTLING,
    (Phase.SETTLING, Step.SETTLE): Phase.ENDED,
}

NOTHING_LEFT = frozenset({Phase.SETTLING, Phase.ENDED})  # no process, no device

# What the master is told. A copy that is settling has no proof of stop yet, as far as it knows.
TOLD_AS: Mapping[Phase, CopyState] = {
    Phase.STARTING: CopyState.STARTING,
    Phase.RUNNING: CopyState.RUNNING,
    Phase.CHECKPOINTING: CopyState.CHECKPOINTING,
    Phase.LEAVING: CopyState.CHECKPOINTING,
    Phase.STOPPING: CopyState.STOPPING,
    Phase.SETTLING: CopyState.STOPPING,
    Phase.ENDED: CopyState.ENDED,
}
