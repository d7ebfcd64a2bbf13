"""What both ends of the stream agree on: names, versions, limits, timings."""

from __future__ import annotations

from dataclasses import dataclass

SERVICE = "eva.worker.v1.WorkerService"
PROTOCOL = 1
OLDEST_PROTOCOL = 1
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
)


@dataclass(frozen=True, slots=True)
class LinkTimings:
    """`silence_ms` without a word from the other side ends a session; the worker dials again.

    `dead_man_ms` without any session is when a worker stops waiting for a master to come back.
    """

    heartbeat_ms: int = 5_000
    silence_ms: int = 20_000
    dead_man_ms: int = 600_000
