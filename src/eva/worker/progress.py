"""Steps read off a task's output, by the regular expression that its job gives.

The expression comes from a stranger, and some take longer than the universe on a line of forty
letters. The worker has one thread for all of its tasks and for its heartbeats, so every search has
an allowance of processor time; Python's matcher looks at signals while it searches, and a timer's
signal ends it. A job whose expression is too slow is not followed any more: it goes on unmonitored.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from types import FrameType

import structlog
from eva_iterator.protocol import LineReader, Step, TaskChannel

from eva.ports.runtime import LOG_START, LogCursor, TaskRef, TaskRuntime

ALLOWANCE_S = 0.2  # of processor time, for one piece of output; a good pattern takes microseconds
PATIENCE = 3  # a machine under load may be late once or twice

_log = structlog.get_logger("eva.worker")


class _TooSlowError(Exception):
    """The allowance is used up."""


class OutputProgress:
    """Follows the output of one task until it ends."""

    def __init__(
        self, pattern: str, channel: TaskChannel, runtime: TaskRuntime, clock: Callable[[], int]
    ) -> None:
        self._pattern = re.compile(pattern)
        self._channel = channel
        self._runtime = runtime
        self._clock = clock
        self._lines = LineReader()
        self._patience = PATIENCE

    async def follow(self, ref: TaskRef) -> None:
        """What was printed before we came tells only where the task stands, not how fast it is."""
        cursor = await self._catch_up(ref)
        async for chunk in self._runtime.logs(ref, cursor, follow=True):
            for count in self._counts(chunk.data):
                self._channel.report(Step(count), self._clock())
            if not self._patience:
                _log.warning(
                    "progress.regex is too slow on what the task prints: its steps are not counted "
                    "any more",
                    task=ref.task,
                    regex=self._pattern.pattern,
                )
                return

    async def _catch_up(self, ref: TaskRef) -> LogCursor:
        cursor, last = LOG_START, None
        async for chunk in self._runtime.logs(ref, cursor, follow=False):
            cursor = chunk.cursor
            for count in self._counts(chunk.data):
                last = count
            if not self._patience:
                break
        if last is not None:
            self._channel.report(Step(last), self._clock())
        return cursor

    def _counts(self, data: bytes) -> list[int]:
        lines = self._lines.feed(data.replace(b"\r", b"\n"))  # progress bars
        try:
            return _in_time(lambda: self._found(lines))
        except _TooSlowError:
            self._patience = max(0, self._patience - 1)
            return []

    def _found(self, lines: list[str]) -> list[int]:
        found = []
        for line in lines:
            match = self._pattern.search(line)
            if match is not None and match.groups() and (match[1] or "").isdecimal():
                found.append(int(match[1]))
        return found


def _in_time(search: Callable[[], list[int]]) -> list[int]:
    """The answer of a search, or _TooSlowError; in the main thread, where signals are heard."""
    searching = True

    def end(_number: int, _frame: FrameType | None) -> None:
        if searching:  # a signal that comes late finds nothing to end
            raise _TooSlowError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, ALLOWANCE_S)
    try:
        return search()
    finally:
        searching = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def pattern_problem(pattern: str) -> str | None:
    """What is wrong with a pattern, if anything."""
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        return f"progress.regex {pattern!r} is no regular expression: {error}"
    return None if groups else f"progress.regex {pattern!r} has no group for the step count"
