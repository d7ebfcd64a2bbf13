"""What happens next: a heap, and a clock that jumps from one happening to the next.

At equal times things happen in the order in which they were put there, except that whatever the
world does comes before the scheduling round.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

Action = Callable[[], None]
_WORLD, _ROUND = 0, 1


class Timeline:
    def __init__(self) -> None:
        self.now_ms = 0
        self._heap: list[tuple[int, int, int, Action]] = []
        self._count = 0

    def at(self, at_ms: int, action: Action) -> None:
        self._count += 1
        heappush(self._heap, (max(at_ms, self.now_ms), _WORLD, self._count, action))

    def after(self, delay_ms: int, action: Action) -> None:
        self.at(self.now_ms + delay_ms, action)

    def round_at(self, at_ms: int, action: Action) -> None:
        self._count += 1
        heappush(self._heap, (at_ms, _ROUND, self._count, action))

    def step(self) -> bool:
        """Do the next thing; False when there is none."""
        if not self._heap:
            return False
        self.now_ms, _, _, action = heappop(self._heap)
        action()
        return True

    def __len__(self) -> int:
        return len(self._heap)
