"""How fast a task runs, from its step count over time.

One bounded history serves both ends of the socket: the worker computes the rate of the last minutes
from it, and the task keeps the same history to replay it to a worker that comes back from a restart
with empty hands.

Only *increases* of the count are points. A slow task (a step every half minute) is then measured
from step to step instead of from report to report, and reports that repeat a count cost nothing.
"""

from __future__ import annotations

from typing import Tuple

DEFAULT_WINDOW_MS = 600_000
POINTS_PER_WINDOW = 64  # a tail point closer than window/64 to the point before it is replaced

Point = Tuple[int, int]  # (time in ms on any monotonic clock, steps done by then)


class StepHistory:
    """Step counts over the last window: bounded in memory, whatever is fed to it."""

    def __init__(self, window_ms: int = DEFAULT_WINDOW_MS) -> None:
        if window_ms <= 0:
            raise ValueError(f"window_ms is {window_ms}: give a window longer than zero")
        self.window_ms = window_ms
        self._spacing_ms = max(1, window_ms // POINTS_PER_WINDOW)
        self._points: list[Point] = []

    @property
    def steps(self) -> int | None:
        """The last count seen, None before the first."""
        return self._points[-1][1] if self._points else None

    def points(self) -> tuple[Point, ...]:
        return tuple(self._points)

    def observe(self, at_ms: int, steps: int) -> bool:
        """Take a count; False if it tells nothing new.

        Every increase counts, at the same millisecond and out of order too: the last count is what
        users see. A count that falls is a task that started over, and its history with it; unless
        the report is older than the last, and so merely late.
        """
        points = self._points
        if points:
            last_ms, last_steps = points[-1]
            if steps == last_steps or (steps < last_steps and at_ms <= last_ms):
                return False
            if steps < last_steps:
                points.clear()
            elif at_ms <= last_ms:
                points.pop()
                at_ms = last_ms
            elif len(points) >= 3 and last_ms - points[-2][0] < self._spacing_ms:
                points.pop()  # thinned: the last point stays exact, those before it keep apart
        points.append((at_ms, steps))
        self._forget(at_ms)
        return True

    def rate(self, now_ms: int) -> float | None:
        """Steps per second over the window that ends now; None until two points are known.

        Silence for one usual gap between points is part of the rhythm; longer silence is a stall
        and lowers the rate, until nothing is left of it after a whole window.
        """
        points = self._points
        if len(points) < 2:
            return None
        last_ms, last_steps = points[-1]
        usual_gap_ms = self._usual_gap_ms()
        end_ms = last_ms + max(0, now_ms - last_ms - usual_gap_ms)
        begin_ms, begin_steps = self._at(end_ms - self.window_ms)
        return 1000.0 * (last_steps - begin_steps) / (end_ms - begin_ms)

    def _usual_gap_ms(self) -> int:
        """The median gap between points, so that an earlier stall does not excuse the next."""
        points = self._points
        gaps = sorted(later[0] - earlier[0] for earlier, later in zip(points, points[1:]))
        return gaps[len(gaps) // 2]

    def _at(self, at_ms: int) -> tuple[float, float]:
        """Time and count at the moment given, between two points by the straight line."""
        points = self._points
        if at_ms <= points[0][0]:
            return points[0]
        for (left_ms, left), (right_ms, right) in zip(points, points[1:]):
            if at_ms <= right_ms:
                share = (at_ms - left_ms) / (right_ms - left_ms)
                return at_ms, left + share * (right - left)
        return at_ms, points[-1][1]

    def _forget(self, now_ms: int) -> None:
        """Drop what lies before the window, but for the one point that the line starts from."""
        begin_ms = now_ms - self.window_ms
        stale = 0
        while stale + 1 < len(self._points) and self._points[stale + 1][0] <= begin_ms:
            stale += 1
        del self._points[:stale]
