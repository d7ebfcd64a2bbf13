"""What is said to the crowd: one line of JSON each way over a Unix socket, answers in order."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

_LONGEST_LINE = 1 << 22

Said = dict[str, Any]


class Line:
    """A connection to the crowd, made when it is first used."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._busy = asyncio.Lock()

    async def ask(self, **said: Any) -> Said:
        async with self._busy:
            if self._streams is None:
                self._streams = await asyncio.open_unix_connection(
                    self._socket, limit=_LONGEST_LINE
                )
            reader, writer = self._streams
            writer.write(encode(said))
            await writer.drain()
            answer = await reader.readline()
        if not answer:
            raise ConnectionError("the crowd has hung up: see crowd.log")
        return decode(answer)

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def encode(said: Said) -> bytes:
    return json.dumps(said).encode() + b"\n"


def decode(line: bytes) -> Said:
    said: Said = json.loads(line)
    return said
