"""Wakes whoever waits for a container to end, from the engine's one stream of events.

An event only says "look again": what counts is what inspecting the container says then. So nothing
is lost when the stream breaks; waiters look again from time to time anyway.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

from eva.adapters.docker import containers
from eva.adapters.docker.engine import Engine
from eva.model.errors import EvaError
from eva.ports.runtime import Home

RECONNECT_S = 1.0


class Deaths:
    def __init__(self, engine: Engine, home: Home) -> None:
        self._engine = engine
        self._filters = {**containers.home_filter(home), "type": "container", "event": "die"}
        self._waiters: set[asyncio.Event] = set()
        self._listener: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def watched(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever a container of ours may have ended."""
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen())
        waiter = asyncio.Event()
        self._waiters.add(waiter)
        try:
            yield waiter
        finally:
            self._waiters.discard(waiter)

    async def _listen(self) -> None:
        def begin(api: Any) -> Any:
            return api.events(filters=self._filters, decode=True)

        while True:
            with contextlib.suppress(EvaError):  # the engine is away: waiters find that out
                async with aclosing(self._engine.stream("the engine's events", begin)) as events:
                    async for _ in events:
                        for waiter in self._waiters:
                            waiter.set()
            await asyncio.sleep(RECONNECT_S)

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listener
            self._listener = None
