"""A worker without a machine: the real state machine and uplink, and tasks that are not there.

It joins with its own key over TLS and talks as `eva worker` does. What `eva worker` would have a
runtime, a storage or a disk do is answered here, after about the time that a process takes.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from eva_iterator.protocol import CHECKPOINTED_EXIT_CODE

from benchmarks.load.heartbeats import Ear, Heartbeats
from benchmarks.load.pretended import PretendedTask, Shelf
from eva.adapters.grpc.dial import Identity, MasterUnreachableError, join
from eva.adapters.identity.bootstrap import Bootstrap
from eva.adapters.identity.certificates import new_key, new_request
from eva.model.ids import TaskId
from eva.model.resources import Resources
from eva.ports.runtime import ExitKind, LogChunk, LogCursor, TaskExit
from eva.ports.storage import Checkpoint, Placement
from eva.ports.workers import Report, TaskSample, WorkerHello
from eva.worker import stimuli as st
from eva.worker.lifecycle import NOTHING_LEFT
from eva.worker.machine import Machine, Memory
from eva.worker.machine_facts import virtual_inventory
from eva.worker.stimuli import Ref, Stimulus
from eva.worker.uplink import Uplink

REDIAL_MS = 1_000
_START_S, _SAVE_S = 0.2, 0.2  # what a small process takes to start, and to save what it has done


class LightWorker:
    """`eva.worker.uplink.Host`, and what `eva.worker.agent.Worker` is to the state machine."""

    def __init__(
        self,
        bootstrap: Bootstrap,
        capacity: Resources,
        shelf: Shelf,
        beats: Heartbeats,
        told: Counter[str],
    ) -> None:
        self.tasks: dict[Ref, PretendedTask] = {}
        self._bootstrap = bootstrap
        self._capacity = capacity
        self._shelf = shelf
        self._told = told  # reports by kind, of all workers
        self._ear = Ear(beats)
        self._machine = Machine(Memory(), virtual_inventory(capacity, bootstrap.instance), _now())
        self._uplink: Uplink | None = None
        self._timers: dict[Ref, asyncio.TimerHandle] = {}
        self._ended: dict[Ref, asyncio.Event] = {}
        self._effects: Mapping[type, Callable[[Any], None]] = {
            st.Tell: self._tell,
            st.Launch: self._launch,
            st.AskCheckpoint: self._save,
            st.Stop: lambda do: self._end(do.ref, TaskExit(ExitKind.SIGNALLED, signal=do.signal)),
            st.Settle: self._settle,
            st.Forget: lambda do: self._forget(do.ref),
        }

    async def run(self, boot_s: float) -> None:
        """From boot to dismissal, or until cancelled."""
        await asyncio.sleep(boot_s)
        identity = await self._join()
        self._uplink = Uplink(
            self._bootstrap, identity, self, redial_ms=REDIAL_MS, dialled=self._ear.dial
        )
        await self._uplink.run()

    async def _join(self) -> Identity:
        key_pem = new_key()
        csr_pem = new_request(key_pem, self._bootstrap.instance)
        while True:
            try:
                return Identity(key_pem, await join(self._bootstrap, csr_pem))
            except MasterUnreachableError:
                await asyncio.sleep(REDIAL_MS / 1_000)

    def unacknowledged(self, kind: type[Report]) -> int:
        return sum(isinstance(each, kind) for each in self._machine.memory.reports.values())

    def leave(self) -> None:
        """The instance is taken away: what ends now ends as it should."""
        self._ear.leaving = True
        for timer in self._timers.values():
            timer.cancel()

    # What the uplink asks

    def hello(self) -> WorkerHello:
        return WorkerHello(
            self._bootstrap.instance,
            self._capacity,
            "127.0.0.1",
            self._machine.describe(),
            "process",
            "load",
            len(self._machine.memory.reports),
        )

    def reports_after(self, number: int) -> list[tuple[int, Report]]:
        reports = self._machine.memory.reports
        return sorted((each, reports[each]) for each in reports if each > number)

    def samples(self, *, everything: bool) -> list[TaskSample]:  # noqa: ARG002  all makes progress
        copies = self._machine.copies
        return [
            task.sample()
            for ref, task in self.tasks.items()
            if ref in copies and copies[ref].phase not in NOTHING_LEFT
        ]

    def put(self, stimulus: Stimulus) -> None:
        for do in self._machine.handle(stimulus, _now()):
            effect = self._effects.get(type(do))
            if effect is not None:
                effect(do)

    async def read_log(
        self, task: TaskId, epoch: int, cursor: LogCursor, *, follow: bool
    ) -> AsyncIterator[LogChunk]:
        """One line at the start, and an end when the task ends."""
        ref = Ref(task, epoch)
        if not cursor:
            yield LogChunk(f"{task} begins\n".encode(), LogCursor("1"))
        ended = self._ended.get(ref)
        if follow and ended is not None:
            await ended.wait()

    # What the state machine wants done

    def _later(self, seconds: float, stimulus: Stimulus) -> None:
        asyncio.get_running_loop().call_later(seconds, self.put, stimulus)

    def _tell(self, do: st.Tell) -> None:
        self._told[type(do.report).__name__] += 1
        if self._uplink is not None:
            self._uplink.news()

    def _launch(self, do: st.Launch) -> None:
        """Never cut short: what is called off meanwhile is stopped once it runs."""
        ref = Ref(do.order.task, do.order.epoch)
        self._ended[ref] = asyncio.Event()
        asyncio.get_running_loop().call_later(_START_S, self._begin, do)

    def _begin(self, do: st.Launch) -> None:
        task = PretendedTask(do.order, self._shelf)
        self.tasks[task.ref] = task
        self.put(st.Launched(task.ref))
        self.put(st.Listens(task.ref))
        finished = TaskExit(ExitKind.EXITED, 0)
        self._timers[task.ref] = asyncio.get_running_loop().call_later(
            max(0.0, task.left_s), self._end, task.ref, finished
        )

    def _save(self, do: st.AskCheckpoint) -> None:
        """The checkpoint stands, and the task leaves with it."""
        task = self.tasks[do.ref]
        self._stop_clock(do.ref)
        name = f"{do.ref.epoch}-{task.save()}"
        self._later(_SAVE_S, st.Answered(do.ref, name))
        self._later(_SAVE_S, st.Ended(do.ref, _LEFT, task.steps))

    def _end(self, ref: Ref, how: TaskExit) -> None:
        self._stop_clock(ref)
        task = self.tasks.get(ref)
        self._later(0, st.Ended(ref, how, None if task is None else task.steps))

    def _stop_clock(self, ref: Ref) -> None:
        timer = self._timers.pop(ref, None)
        if timer is not None:
            timer.cancel()
        if ref in self._ended:
            self._ended[ref].set()

    def _settle(self, do: st.Settle) -> None:
        checkpoint = None
        task = self.tasks.get(do.ref)
        if do.publish and task is not None:
            placement = Placement(task.order.job, *do.ref)
            steps = self._shelf.get(do.ref.task, 0)
            checkpoint = Checkpoint(placement, do.name or "", steps, _now(), 0)
        self._later(0, st.Settled(do.ref, checkpoint))

    def _forget(self, ref: Ref) -> None:
        self.tasks.pop(ref, None)
        self._ended.pop(ref, None)


_LEFT = TaskExit(ExitKind.EXITED, CHECKPOINTED_EXIT_CODE)


def _now() -> int:
    return time.time_ns() // 1_000_000
