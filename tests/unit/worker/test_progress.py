"""Steps in a task's output: found by good expressions, and bad ones harm nobody else."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from typing import cast

from eva_iterator.protocol import TaskChannel

from eva.model.ids import TaskId
from eva.ports.runtime import LOG_START, LogChunk, LogCursor, TaskRef, TaskRuntime
from eva.worker.progress import ALLOWANCE_S, PATIENCE, OutputProgress

REF = TaskRef("c", TaskId("train-1.0"), 1)
POISON = b"a" * 60 + b"!\n"
CATASTROPHE = r"(?:a+)+$|step (\d+)"


class Printed:
    """A runtime of which only the output is asked for."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces
        self.read = 0

    async def logs(
        self, _ref: TaskRef, _cursor: LogCursor = LOG_START, *, follow: bool
    ) -> AsyncIterator[LogChunk]:
        for piece in self.pieces if follow else ():
            self.read += 1
            yield LogChunk(piece, LogCursor(""))


def follow(pattern: str, printed: Printed) -> TaskChannel:
    channel = TaskChannel(60_000)
    runtime = cast("TaskRuntime", printed)
    asyncio.run(OutputProgress(pattern, channel, runtime, lambda: 0).follow(REF))
    return channel


def test_steps_are_found_in_lines_and_progress_bars() -> None:
    assert follow(r"step (\d+)", Printed(b"step 1\nste", b"p 2\nother\n")).steps == 2
    assert follow(r"(\d+)%", Printed(b"10%\r20%\r30%\r")).steps == 30


def test_an_expression_that_never_ends_is_ended_and_given_up() -> None:
    printed = Printed(b"step 1\n", *[POISON] * (PATIENCE + 5))
    began = time.process_time()
    assert follow(CATASTROPHE, printed).steps == 1
    assert printed.read == 1 + PATIENCE
    assert time.process_time() - began < 5 * ALLOWANCE_S * PATIENCE
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_one_slow_line_is_passed_over() -> None:
    assert follow(CATASTROPHE, Printed(POISON, b"step 7\n")).steps == 7
