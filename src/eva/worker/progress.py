"""Steps read off a task's output, by the regular expression that its job gives."""

from __future__ import annotations

import re
from collections.abc import Callable

from eva_iterator.protocol import LineReader, Step, TaskChannel

from eva.ports.runtime import LOG_START, LogCursor, TaskRef, TaskRuntime


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

    async def follow(self, ref: TaskRef) -> None:
        """What was printed before we came tells only where the task stands, not how fast it is."""
        cursor = await self._catch_up(ref)
        async for chunk in self._runtime.logs(ref, cursor, follow=True):
            for count in self._counts(chunk.data):
                self._channel.report(Step(count), self._clock())

    async def _catch_up(self, ref: TaskRef) -> LogCursor:
        cursor, last = LOG_START, None
        async for chunk in self._runtime.logs(ref, cursor, follow=False):
            cursor = chunk.cursor
            for count in self._counts(chunk.data):
                last = count
        if last is not None:
            self._channel.report(Step(last), self._clock())
        return cursor

    def _counts(self, data: bytes) -> list[int]:
        found = []
        for line in self._lines.feed(data.replace(b"\r", b"\n")):  # progress bars
            match = self._pattern.search(line)
            if match is not None and match.groups() and (match[1] or "").isdecimal():
                found.append(int(match[1]))
        return found


def pattern_problem(pattern: str) -> str | None:
    """What is wrong with a pattern, if anything."""
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        return f"progress.regex {pattern!r} is no regular expression: {error}"
    return None if groups else f"progress.regex {pattern!r} has no group for the step count"
