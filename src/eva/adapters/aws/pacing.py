"""How fast EC2 is called: a bucket of calls, terminations first, slower when EC2 says so.

All calls of an account share EC2's own limits, so being refused slows down everything here and not
only the call that was refused. Waits are drawn at random so that several masters do not come back
at the same moment.
"""

from __future__ import annotations

import asyncio
import enum
import heapq
import itertools
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from eva.model.units import MS_PER_SECOND

_FIRST_PENALTY_MS, _LONGEST_PENALTY_MS = 1_000, 60_000


class Urgency(enum.IntEnum):
    """Who goes first when calls have to wait: what stops costs, then what shows, then the rest."""

    TERMINATE = 0
    LOOK = 1
    LAUNCH = 2
    REFRESH = 3


@dataclass(order=True)
class _Waiter:
    urgency: Urgency
    number: int
    turn: asyncio.Future[None] = field(compare=False)


class Pacer:
    """`sleep` takes seconds, as asyncio's does; `clock` tells milliseconds."""

    def __init__(
        self,
        calls_per_second: float,
        burst: int,
        clock: Callable[[], int],
        chance: random.Random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._gap_ms = MS_PER_SECOND / calls_per_second
        self._burst_ms = self._gap_ms * (burst - 1)
        self._clock, self._chance, self._sleep = clock, chance, sleep
        self._next_ms = float("-inf")  # when the bucket is empty, the next call is at this time
        self._blocked_until_ms = float("-inf")
        self._penalty_ms = 0.0
        self._waiting: list[_Waiter] = []
        self._numbers = itertools.count()
        self._pump: asyncio.Task[None] | None = None

    async def turn(self, urgency: Urgency) -> None:
        """Wait until this call may be made."""
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, _Waiter(urgency, next(self._numbers), turn))
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._serve())
        await turn

    def refused(self) -> None:
        """EC2 wants fewer calls: nobody calls for a while, each time for longer."""
        self._penalty_ms = min(
            max(2 * self._penalty_ms, _FIRST_PENALTY_MS), float(_LONGEST_PENALTY_MS)
        )
        wait_ms = self._chance.uniform(self._penalty_ms / 2, self._penalty_ms)
        self._blocked_until_ms = max(self._blocked_until_ms, self._clock() + wait_ms)

    def accepted(self) -> None:
        self._penalty_ms = self._penalty_ms / 2 if self._penalty_ms > 1 else 0.0

    async def close(self) -> None:
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
        for waiter in self._waiting:
            waiter.turn.cancel()
        self._waiting.clear()

    async def _serve(self) -> None:
        """Who goes is chosen after the wait: a termination may have come meanwhile."""
        while self._waiting:
            wait_ms = self._wait_ms()
            if wait_ms > 0:
                await self._sleep(wait_ms / MS_PER_SECOND)
                continue
            waiter = heapq.heappop(self._waiting)
            if waiter.turn.done():
                continue  # given up meanwhile
            self._next_ms = max(self._next_ms, self._clock() - self._burst_ms) + self._gap_ms
            waiter.turn.set_result(None)

    def _wait_ms(self) -> float:
        return max(self._next_ms, self._blocked_until_ms) - self._clock()
