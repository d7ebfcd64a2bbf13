"""A worker in miniature: the real socket and the real channel, without the rest of a worker."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from eva_iterator import latest_complete
from eva_iterator.protocol import Answer, Connection, TaskChannel

PATIENCE_S = 20.0


class MiniWorker:
    """Listens from `__enter__` to `kill`; a new one on the same path is a worker that restarted."""

    def __init__(self, path: Path, window_ms: int = 600_000) -> None:
        self.path = path
        self.channel = TaskChannel(window_ms)
        self.answers: list[Answer] = []
        self._changed = threading.Condition()
        self._selector = selectors.DefaultSelector()
        self._connections: dict[socket.socket, Connection] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._stop_receiver, self._stop_sender = socket.socketpair()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._listener.bind(str(self.path))
        self._listener.listen()
        for source in (self._listener, self._stop_receiver):
            self._selector.register(source, selectors.EVENT_READ)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()

    def kill(self) -> None:
        """Go away without a word, as a killed worker does."""
        if not self.path.exists():
            return
        self._stop_sender.send(b"x")
        self._thread.join(PATIENCE_S)
        self.path.unlink()

    def request(self, number: int, grace_s: int = 60) -> None:
        with self._changed:
            self.channel.request_checkpoint(number, grace_s)
            self._flush()

    def cancel(self) -> None:
        with self._changed:
            self.channel.cancel_checkpoint()
            self._flush()

    def wait_for(self, predicate: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(predicate, PATIENCE_S), (
                f"steps={self.channel.steps} answers={self.answers}"
            )

    def wait_for_steps(self, steps: int) -> None:
        self.wait_for(lambda: (self.channel.steps or 0) >= steps)

    def rate(self) -> float | None:
        with self._changed:
            return self.channel.rate(_now_ms())

    def _run(self) -> None:
        running = True
        while running:
            for key, _ in self._selector.select():
                source = key.fileobj
                assert isinstance(source, socket.socket)
                if source is self._stop_receiver:
                    running = False
                elif source is self._listener:
                    self._accept()
                else:
                    self._read(source)
        for source in [self._listener, self._stop_receiver, self._stop_sender, *self._connections]:
            source.close()
        self._selector.close()

    def _accept(self) -> None:
        accepted, _ = self._listener.accept()
        with self._changed:
            self._connections[accepted] = self.channel.open()
        self._selector.register(accepted, selectors.EVENT_READ)

    def _read(self, source: socket.socket) -> None:
        try:
            data = source.recv(65536)
        except ConnectionResetError:
            data = b""
        with self._changed:
            if data:
                self.answers += self._connections[source].receive(data, _now_ms())
                self._flush()
            else:
                self._connections.pop(source).close()
                self._selector.unregister(source)
                source.close()
            self._changed.notify_all()

    def _flush(self) -> None:
        for source, connection in self._connections.items():
            with contextlib.suppress(BrokenPipeError):  # the reader learns of it by itself
                source.sendall(connection.take_output())


def task_variables(job_dir: Path, epoch: int, socket_path: Path | None) -> dict[str, str]:
    """The environment of a task's given epoch, restoring from the epoch before if it can."""
    checkpoints = job_dir / "checkpoints"
    variables = dict(os.environ)
    variables["EVA_JOB_DIR"] = str(job_dir)
    variables["EVA_CHECKPOINT_DIR"] = str(checkpoints / str(epoch))
    if socket_path is not None:
        variables["EVA_SOCKET"] = str(socket_path)
    for earlier in range(epoch - 1, 0, -1):
        found = latest_complete(checkpoints / str(earlier))
        if found is not None:
            variables["EVA_RESTORE_DIR"] = str(found)
            break
    return variables


def poll(predicate: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait until another thread or process has made it true; bounded, and checked often."""
    give_up_at = time.monotonic() + patience_s
    while not predicate():
        assert time.monotonic() < give_up_at, "it never came true"
        time.sleep(0.002)


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
