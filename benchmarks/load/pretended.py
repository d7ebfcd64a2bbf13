"""A task that is not there: it makes progress by the clock, and saves it as a number.

What it says of itself is what a task with EvaIterator would: a count of whole steps, from which the
worker's own `TaskChannel` makes the rate over the job's window.
"""

from __future__ import annotations

import time

from eva_iterator.protocol import Step, TaskChannel

from benchmarks.load.scenario import PACE
from eva.model.ids import TaskId
from eva.ports.runtime import Argv
from eva.ports.workers import StartOrder, TaskSample
from eva.worker.stimuli import Ref

Shelf = dict[TaskId, int]  # checkpoints: the steps that each task had done


class PretendedTask:
    def __init__(self, order: StartOrder, shelf: Shelf) -> None:
        self.order = order
        self.ref = Ref(order.task, order.epoch)
        program = order.run.program
        if not isinstance(program, Argv) or program.words[0] != "pretend":
            raise TypeError(f"{self.ref} is no task of the load: {program}")
        self.total = int(program.words[1])
        self._shelf = shelf
        self._restored = shelf.get(order.task, 0)
        self._began_s = time.monotonic()
        self._channel = TaskChannel(order.run.window_ms)

    @property
    def steps(self) -> int:
        done = self._restored + int((time.monotonic() - self._began_s) * PACE)
        return min(self.total, done)

    @property
    def left_s(self) -> float:
        return (self.total - self._restored) / PACE + self._began_s - time.monotonic()

    def save(self) -> int:
        self._shelf[self.order.task] = self.steps
        return self.steps

    def sample(self) -> TaskSample:
        now_ms = time.time_ns() // 1_000_000
        self._channel.report(Step(self.steps), now_ms)
        return TaskSample(*self.ref, self._channel.steps, self._channel.rate(now_ms))
