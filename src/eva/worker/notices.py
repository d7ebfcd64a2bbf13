"""Where a worker hears that its instance is to be taken back: it has to look, nobody tells it.

On AWS that is the instance metadata service, asked every five seconds; everywhere it is also a file
in the worker's folder, for clouds that can write one, and for trying it out. Failing to look never
harms a worker: it says so once, and goes on looking.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from eva.adapters import instance_metadata
from eva.adapters.instance_metadata import Fact, InstanceMetadata
from eva.model.errors import TryAgainError

FILE_POLL_S = 1.0
METADATA_POLL_S = 5.0
_ON_DEMAND = "on-demand"

_log = structlog.get_logger("eva.worker")


async def of_file(path: Path) -> int | None:
    """The deadline in ms that appears in a file; None if something else does."""
    while not path.exists():  # noqa: ASYNC110, ASYNC240  a small local file, which tells nobody that it is there
        await asyncio.sleep(FILE_POLL_S)
    try:
        return int(await asyncio.to_thread(path.read_text))
    except (OSError, ValueError) as error:
        _log.error("the spot notice holds no time in ms", path=str(path), why=str(error))
        return None


@dataclass
class MetadataWatch:
    """Advice to leave is only logged: it comes long before an end that may never come, and moving
    costs. The risk of ends is in the prices that plans are made with.
    """

    metadata: InstanceMetadata
    clock: Callable[[], int]
    poll_s: float = METADATA_POLL_S
    _silent: bool = field(default=False, init=False)
    _advised: bool = field(default=False, init=False)

    async def deadline_ms(self) -> int | None:
        """When the instance is taken back, once that is announced; None if it never will be."""
        life_cycle = None
        while True:
            life_cycle = life_cycle or await self._ask(Fact.LIFE_CYCLE)
            if life_cycle == _ON_DEMAND:
                return None
            action = await self._ask(Fact.INSTANCE_ACTION)
            if action is not None:
                _log.warning("this instance is taken back", action=action)
                return instance_metadata.deadline_ms(action, self.clock())
            await self._hear_advice()
            await asyncio.sleep(self.poll_s)

    async def _hear_advice(self) -> None:
        advice = None if self._advised else await self._ask(Fact.REBALANCE)
        if advice is not None:
            self._advised = True
            _log.warning("this instance is more likely than usual to be taken back", said=advice)

    async def _ask(self, fact: Fact) -> str | None:
        try:
            answer = await asyncio.to_thread(self.metadata.ask, fact)
        except TryAgainError as error:
            if not self._silent:
                _log.warning("cannot look for spot notices", why=str(error))
            self._silent = True
            return None
        if self._silent:
            _log.info("looking for spot notices again")
        self._silent = False
        return answer
