"""The master's clock: milliseconds that never decrease, not even across restarts.

The controller refuses time that goes backwards, and a wall clock is set back now and then. So this
one follows the wall as long as that goes forward, and stands still until the wall has caught up
where it does not. It never starts before the journal's end.
"""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


class SteadyClock:
    def __init__(self, wall: Clock = wall_ms) -> None:
        self._wall = wall
        self._last_ms = 0

    def start_after(self, ms: int) -> None:
        """The journal ends here: nothing is to be earlier."""
        self._last_ms = max(self._last_ms, ms)

    def __call__(self) -> int:
        self._last_ms = max(self._last_ms, self._wall())
        return self._last_ms
