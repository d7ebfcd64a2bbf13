"""The background thread that speaks to the worker.

It wakes once a second, reads one counter, and writes a line if the count has grown; so a step costs
the loop nothing but an increment. The socket may go away and come back at any time (a worker that
restarts): the thread connects again and replays its step history, so that the worker's window is
whole. Nothing that happens here can make the user's loop fail.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from typing import Callable

from eva_iterator.protocol import (
    UNASKED,
    VERSION,
    Answer,
    Cancel,
    Checkpoint,
    CheckpointFailed,
    Hello,
    LineReader,
    Message,
    Step,
    format_line,
    parse_line,
)
from eva_iterator.throughput import StepHistory

INTERVAL_S = 1.0
SEND_TIMEOUT_S = 5.0
MAX_UNSENT = 16  # answers kept for a worker that is away; the newest matter
NAME = "eva-iterator"
OPENING = threading.Lock()  # held over a fork too: a child has to know which sockets to close


class Reporter:
    """One per process, started by `Task` only where Eva gives a socket."""

    def __init__(
        self,
        path: str,
        steps: Callable[[], int],
        window_ms: int,
        *,
        can_checkpoint: bool,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self.request: Checkpoint | None = None  # read by the loop without a lock
        self._path = path
        self._steps = steps
        self._can_checkpoint = can_checkpoint
        self._interval_s = interval_s
        self._history = StepHistory(window_ms)
        self._reported = steps()  # nothing is reported before the first step: start-up is no step
        self._answered: Answer | None = None  # repeated when the same request is repeated
        self._unsent: list[bytes] = []
        self._sent = threading.Condition()
        self._socket: socket.socket | None = None
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_sender.setblocking(False)
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def answer(self, answer: Answer, timeout_s: float = SEND_TIMEOUT_S) -> bool:
        """Send an answer, waiting a bounded time if it was asked for; False if not sent by then.

        It is not lost then: it is sent on reconnection, and the manifest and the exit code tell
        the same story to a worker that never hears it.
        """
        asked = answer.request != UNASKED
        if asked:
            self._answered = answer
            self.request = None
        with self._sent:
            self._unsent.append(format_line(answer))
            del self._unsent[:-MAX_UNSENT]
            self._wake()
            return asked and self._sent.wait_for(lambda: not self._unsent, timeout_s)

    def close(self) -> None:
        """Report the last count and end the thread."""
        self._closed = True
        self._wake()
        self._thread.join(SEND_TIMEOUT_S)
        self._wake_sender.close()

    def abandon(self) -> None:
        """In a forked child: the thread is not here, and the descriptors are the parent's."""
        for inherited in (self._socket, self._wake_receiver, self._wake_sender):
            if inherited is not None:
                inherited.close()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: awake already; closed: the thread has ended
            self._wake_sender.send(b"x")

    def _run(self) -> None:
        reader = LineReader()
        while True:
            closing = self._closed
            self._sample()
            if self._socket is None and self._connect():
                reader = LineReader()
            self._flush()
            if closing:
                break
            self._wait(reader)
        self._disconnect()
        self._wake_receiver.close()

    def _sample(self) -> None:
        steps = self._steps()
        if steps == self._reported:
            return
        self._history.observe(_now_ms(), steps)
        if self._send(format_line(Step(steps))):
            self._reported = steps

    def _connect(self) -> bool:
        """Connect, say hello, replay the history. One cheap attempt per interval."""
        with OPENING:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(SEND_TIMEOUT_S)
        try:
            self._socket.connect(self._path)
        except OSError:
            self._disconnect()
            return False
        now_ms = _now_ms()
        lines = [format_line(Hello(VERSION, NAME))]
        lines += [
            format_line(Step(count, max(0, now_ms - at_ms)))
            for at_ms, count in self._history.points()
        ]
        return self._send(b"".join(lines))

    def _flush(self) -> None:
        with self._sent:
            while self._unsent and self._socket is not None and self._send(self._unsent[0]):
                self._unsent.pop(0)
            self._sent.notify_all()

    def _wait(self, reader: LineReader) -> None:
        """Until the interval is over, or the worker or the loop has something to say."""
        sources = [self._wake_receiver] + ([self._socket] if self._socket else [])
        ready, _, _ = select.select(sources, [], [], self._interval_s)
        if self._wake_receiver in ready:
            self._wake_receiver.recv(4096)
        if self._socket is not None and self._socket in ready:
            self._receive(self._socket, reader)

    def _receive(self, connection: socket.socket, reader: LineReader) -> None:
        try:
            data = connection.recv(65536)
        except OSError:
            data = b""
        if not data:
            self._disconnect()
            # Without this a worker that closes at once would be reconnected to in a tight loop.
            select.select([self._wake_receiver], [], [], self._interval_s)
            return
        for line in reader.feed(data):
            message = parse_line(line)
            if message is not None:
                self._obey(message)

    def _obey(self, message: Message) -> None:
        if isinstance(message, Checkpoint):
            if self._answered is not None and self._answered.request == message.request:
                self._send(format_line(self._answered))
            elif self._can_checkpoint:
                self.request = message
            else:
                self._send(
                    format_line(CheckpointFailed(message.request, "EVA_CHECKPOINT_DIR is not set"))
                )
        elif isinstance(message, Cancel):
            wanted = self.request
            if wanted is not None and wanted.request == message.request:
                self.request = None

    def _send(self, line: bytes) -> bool:
        if self._socket is None:
            return False
        try:
            self._socket.sendall(line)
        except OSError:
            self._disconnect()
            return False
        return True

    def _disconnect(self) -> None:
        """A request lives as long as its connection: a worker that still wants it repeats it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self.request = None


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
