"""Heartbeats, listened to on the line: when each was sent, and when the master answered it.

An answer within a second is in time, one within the interval is late, and anything later, or a
session that broke before the answer, is a heartbeat missed. The master itself would only give a
worker up after four intervals of silence; this is stricter on purpose.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from eva.adapters.grpc.dial import Identity, MasterSession, dial
from eva.adapters.grpc.generated import worker_pb2 as pb
from eva.adapters.identity.bootstrap import Bootstrap

LATE_S = 1.0


@dataclass
class Heartbeats:
    """Of all workers together, since `begin`. Times are seconds."""

    interval_s: float
    sent: int = 0
    answered: int = 0
    late: int = 0
    missed: int = 0
    broken: int = 0  # sessions that ended though their worker was to live on
    answers_s: list[float] = field(default_factory=list)
    worst_sending_s: float = 0.0  # how much later than due a heartbeat was sent: our own doing
    connected: int = 0
    fewest_connected: int = 0
    _open: set[TimedSession] = field(default_factory=set)

    def begin(self) -> None:
        """Count from now on; heartbeats under way count with those to come."""
        self.sent = sum(len(session.unanswered) for session in self._open)
        self.answered = self.late = self.missed = self.broken = 0
        self.answers_s = []
        self.worst_sending_s = 0.0
        self.fewest_connected = self.connected

    def end(self) -> None:
        """What is too late by now is missed, whether or not it is still answered."""
        now_s = time.monotonic()
        for session in self._open:
            overdue = [at for at in session.unanswered if now_s - at > self.interval_s]
            self.missed += len(overdue)

    def opened(self, session: TimedSession) -> None:
        self._open.add(session)
        self.connected += 1

    def closed(self, session: TimedSession, *, as_meant: bool) -> None:
        self._open.discard(session)
        self.connected -= 1
        self.fewest_connected = min(self.fewest_connected, self.connected)
        if not as_meant:
            self.broken += 1
            self.missed += len(session.unanswered)

    def answer(self, took_s: float) -> None:
        self.answered += 1
        self.answers_s.append(took_s)
        if took_s > self.interval_s:
            self.missed += 1
        elif took_s > LATE_S:
            self.late += 1


class TimedSession(MasterSession):
    """A session that notes its heartbeats."""

    def __init__(self, session: MasterSession, beats: Heartbeats) -> None:
        self._session = session
        self._beats = beats
        self._last_sent_s: float | None = None
        self.unanswered: deque[float] = deque()

    async def write(self, message: pb.FromWorker) -> None:
        if message.WhichOneof("message") == "heartbeat":
            self._note_sending()
        await self._session.write(message)

    async def read(self) -> pb.FromMaster:
        message = await self._session.read()
        if message.WhichOneof("message") == "heartbeat_reply" and self.unanswered:
            self._beats.answer(time.monotonic() - self.unanswered.popleft())
        return message

    def _note_sending(self) -> None:
        now_s, beats = time.monotonic(), self._beats
        if self._last_sent_s is not None:
            late_s = now_s - self._last_sent_s - beats.interval_s
            beats.worst_sending_s = max(beats.worst_sending_s, late_s)
        self._last_sent_s = now_s
        self.unanswered.append(now_s)
        beats.sent += 1


class Ear:
    """`eva.worker.uplink.Dial` for one worker; `leaving` tells an end from a break."""

    def __init__(self, beats: Heartbeats) -> None:
        self._beats = beats
        self.leaving = False

    @asynccontextmanager
    async def dial(self, bootstrap: Bootstrap, identity: Identity) -> AsyncIterator[MasterSession]:
        async with dial(bootstrap, identity) as plain:
            session = TimedSession(plain, self._beats)
            self._beats.opened(session)
            try:
                yield session
            finally:
                self._beats.closed(session, as_meant=self.leaving)
