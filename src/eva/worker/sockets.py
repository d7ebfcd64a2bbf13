"""The Unix socket on which a task reports steps and hears checkpoint requests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

from eva_iterator.errors import ProtocolError
from eva_iterator.protocol import Answer, Connection, TaskChannel

from eva.worker.environment import SOCKET_NAME

_READ_BYTES = 64 * 1024


class TaskSocket:
    """Serves one task's socket around its channel; `on_answer` hears of checkpoints."""

    def __init__(
        self,
        folder: Path,
        channel: TaskChannel,
        clock: Callable[[], int],
        on_answer: Callable[[Answer], None],
        on_listening: Callable[[], None],
    ) -> None:
        self.folder = folder
        self._channel = channel
        self._clock = clock
        self._on_answer = on_answer
        self._on_listening = on_listening
        self._open: dict[Connection, asyncio.StreamWriter] = {}
        self._server: asyncio.Server | None = None

    async def serve(self) -> None:
        self.folder.parent.mkdir(exist_ok=True, mode=0o700)
        self.folder.mkdir(exist_ok=True, mode=0o755)
        path = self.folder / SOCKET_NAME
        path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._accept, path)
        path.chmod(0o666)  # a container's user is another; the folder above is closed to others

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            connection = self._channel.open()
        except ProtocolError:
            writer.close()
            return
        self._open[connection] = writer
        greeted = False
        try:
            while data := await reader.read(_READ_BYTES):
                for answer in connection.receive(data, self._clock()):
                    self._on_answer(answer)
                if connection.version is not None and not greeted:
                    greeted = True
                    self._on_listening()
                self.flush()
        except OSError:
            pass  # the task is gone, or dropped the connection; it may come back
        finally:
            del self._open[connection]
            connection.close()
            writer.close()

    def flush(self) -> None:
        """Send what the channel has for its connections. They are few words: nothing waits."""
        for connection, writer in self._open.items():
            output = connection.take_output()
            if output and not writer.is_closing():
                writer.write(output)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            for writer in self._open.values():
                writer.close()
            self._server = None
        with contextlib.suppress(OSError):
            (self.folder / SOCKET_NAME).unlink(missing_ok=True)

    async def remove(self) -> None:
        await self.close()
        with contextlib.suppress(OSError):
            self.folder.rmdir()
            self.folder.parent.rmdir()  # refused while other tasks have theirs
