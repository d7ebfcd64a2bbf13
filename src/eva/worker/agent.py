"""The worker: wait for what happens, let the state machine decide, write down, carry out.

One queue of stimuli and one consumer, so that the machine sees one thing at a time. What an
instruction changes on disk is committed before any of its effects begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any

import structlog

from eva.adapters.grpc.dial import Identity
from eva.adapters.instance_metadata import InstanceMetadata
from eva.model.errors import EvaError
from eva.model.ids import TaskId
from eva.ports.runtime import (
    ExitKind,
    LogChunk,
    LogCursor,
    TaskExit,
    TaskPhase,
    TaskRef,
    TaskStatus,
)
from eva.ports.workers import Report, TaskSample, WorkerHello
from eva.worker import notices
from eva.worker import stimuli as st
from eva.worker.lease import Lease
from eva.worker.lifecycle import NOTHING_LEFT, Phase
from eva.worker.machine import Machine
from eva.worker.notebook import Notebook
from eva.worker.settings import WorkerSettings
from eva.worker.stimuli import Instruction, Ref, Stimulus
from eva.worker.task import LocalTask, prepare, report_failure
from eva.worker.uplink import Uplink

_log = structlog.get_logger("eva.worker")


class Worker:
    def __init__(self, settings: WorkerSettings, identity: Identity) -> None:
        self._settings = settings
        self._notebook = Notebook(settings.state / "worker.db")
        self._machine = Machine(self._notebook.load(), settings.inventory, settings.clock())
        self._tasks: dict[Ref, LocalTask] = {}
        self._queue: asyncio.Queue[Stimulus | BaseException] = asyncio.Queue()
        self._uplink = Uplink(settings.bootstrap, identity, self, settings.redial_ms)
        self._asides: set[asyncio.Task[None]] = set()
        self._ended: str | None = None
        self._lease = None if settings.lease is None else Lease(settings.lease)
        self._keepers: Mapping[type, Callable[[Any], None]] = {
            st.Tell: lambda do: self._notebook.keep_report(do.number, do.report),
            st.Keep: self._keep,
            st.KeepFloor: lambda do: self._notebook.keep_floor(do.task, do.epoch),
            st.Forget: lambda do: self._notebook.forget_copy(do.ref),
            st.ForgetReports: lambda do: self._notebook.forget_reports(do.number),
        }
        self._effects: Mapping[type, Callable[[Any], None]] = {
            st.Tell: self._tell,
            st.Prepare: lambda do: self._aside(self._prepare(do)),
            st.Launch: self._launch,
            st.CallOffLaunch: lambda do: self._tasks[do.ref].call_off(),
            st.AskCheckpoint: lambda do: self._tasks[do.ref].ask_checkpoint(
                do.request, do.grace_ms
            ),
            st.CancelCheckpoint: lambda do: self._tasks[do.ref].cancel_checkpoint(),
            st.Signal: lambda do: self._tasks[do.ref].signal(do.number),
            st.Stop: lambda do: self._tasks[do.ref].stop(do.signal, do.grace_ms),
            st.Settle: lambda do: self._tasks[do.ref].settle(do),
            st.Forget: self._forget,
            st.ShutDown: self._shut_down,
        }

    async def run(self) -> str:
        """Until there is nothing left to do here; the reason. Cancelled, tasks run on."""
        await self._adopt()
        self._aside(self._uplink.run())
        self._watch_for_notices()
        try:
            while self._ended is None:
                await self._turn()
            return self._ended
        finally:
            for part in self._asides:
                part.cancel()
            await asyncio.gather(*self._asides, return_exceptions=True)
            for task in self._tasks.values():
                await task.close()
            await self._settings.runtime.close()
            self._notebook.close()

    async def _turn(self) -> None:
        deadline_ms = self._machine.next_deadline_ms()
        wait_s = None
        if deadline_ms is not None:
            wait_s = max(0, deadline_ms - self._settings.clock()) / 1_000
        stimulus: Stimulus | BaseException
        try:
            async with asyncio.timeout(wait_s):
                stimulus = await self._queue.get()
        except TimeoutError:
            stimulus = st.Tick()
        if isinstance(stimulus, BaseException):
            raise stimulus
        self._do(self._machine.handle(stimulus, self._settings.clock()))
        if self._lease is not None and isinstance(stimulus, st.MasterHeard):
            self._lease.renew(self._machine.dead_man_ms)

    def _do(self, instructions: list[Instruction]) -> None:
        if any(type(do) in self._keepers for do in instructions):
            self._notebook.begin()
            for do in instructions:
                keep = self._keepers.get(type(do))
                if keep is not None:
                    keep(do)
            self._notebook.commit()
        for do in instructions:
            effect = self._effects.get(type(do))
            if effect is not None:
                effect(do)

    # Coming back

    async def _adopt(self) -> None:
        """Compare what is written down with what runs, and go on from there."""
        found: dict[Ref, TaskStatus] = {}
        for status in await self._settings.runtime.adopt():
            ref = Ref(status.ref.task, status.ref.epoch)
            found[ref] = status
            if ref not in self._machine.copies:
                self._aside(self._remove_stranger(status.ref))
        for ref, copy in sorted(self._machine.copies.items()):
            task = LocalTask(self._settings, copy.order, self.put)
            self._tasks[ref] = task
            if copy.phase not in NOTHING_LEFT:
                await self._take_up(task, copy.phase, found.get(ref))
        self._do(self._machine.resume())

    async def _take_up(self, task: LocalTask, phase: Phase, status: TaskStatus | None) -> None:
        if status is None and phase is Phase.STARTING:
            reason = "the worker restarted before the task was started"
            self.put(st.LaunchFailed(task.ref, reason, infrastructure=True))
        elif status is None:
            detail = "the runtime knows nothing of it after a restart"
            self.put(st.Ended(task.ref, TaskExit(ExitKind.LOST, detail=detail)))
        else:
            if phase is Phase.STARTING and status.phase is not TaskPhase.ENDED:
                self.put(st.Launched(task.ref))
            await task.attend()

    async def _remove_stranger(self, ref: TaskRef) -> None:
        """Of this instance, and not written down: its end was acknowledged, or its start undone."""
        runtime = self._settings.runtime
        _log.warning("removing a task that is not written down", task=str(ref))
        try:
            await runtime.stop(ref, 0)
            await runtime.remove(ref)
        except EvaError as error:
            _log.error("a stray task could not be removed", task=str(ref), why=str(error))

    # Carrying out

    def _keep(self, do: st.Keep) -> None:
        copy = self._machine.copies.get(do.ref)
        if copy is not None:
            self._notebook.keep_copy(copy)

    def _tell(self, do: st.Tell) -> None:
        _log.info("report", number=do.number, report=do.report)
        self._uplink.news()

    def _launch(self, do: st.Launch) -> None:
        task = LocalTask(self._settings, do.order, self.put)
        self._tasks[task.ref] = task
        task.launch(do.devices)

    async def _prepare(self, do: st.Prepare) -> None:
        try:
            preparation = await prepare(self._settings, do.order.run)
            await self._settings.runtime.prepare(preparation)
        except EvaError as error:  # a hint: the start will say it again, to those who must know
            _log.warning("could not prepare", task=do.order.task, why=str(error))

    def _forget(self, do: st.Forget) -> None:
        task = self._tasks.pop(do.ref, None)
        if task is not None:
            self._aside(self._forget_traces(task))

    async def _forget_traces(self, task: LocalTask) -> None:
        try:
            await task.forget()
        except EvaError as error:
            _log.warning("traces of a task remain", task=str(task.ref), why=str(error))

    def _shut_down(self, do: st.ShutDown) -> None:
        self._ended = do.reason

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        aside = asyncio.create_task(work)
        self._asides.add(aside)
        aside.add_done_callback(self._asides.discard)
        aside.add_done_callback(lambda done: report_failure(done, self.put))

    def _watch_for_notices(self) -> None:
        settings = self._settings
        self._aside(self._pass_on(notices.of_file(settings.spot_notice)))
        if settings.metadata_address:
            metadata = InstanceMetadata(settings.metadata_address)
            watch = notices.MetadataWatch(metadata, settings.clock)
            self._aside(self._pass_on(watch.deadline_ms()))

    async def _pass_on(self, notice: Awaitable[int | None]) -> None:
        deadline_ms = await notice
        if deadline_ms is not None:
            self.put(st.SpotNoticeHeard(deadline_ms))

    # What the uplink asks

    def hello(self) -> WorkerHello:
        settings = self._settings
        return WorkerHello(
            settings.instance,
            settings.inventory.capacity,
            settings.address,
            self._machine.describe(),
            settings.runtime.traits.name,
            settings.version,
            len(self._machine.memory.reports),
        )

    def reports_after(self, number: int) -> list[tuple[int, Report]]:
        reports = self._machine.memory.reports
        return sorted((each, reports[each]) for each in reports if each > number)

    def samples(self, *, everything: bool) -> list[TaskSample]:
        found = []
        for ref, task in self._tasks.items():
            copy = self._machine.copies.get(ref)
            if copy is None or copy.phase in NOTHING_LEFT:
                continue
            if everything:
                task.forget_told()
            sample = task.sample()
            if sample is not None:
                found.append(sample)
        return found

    def put(self, stimulus: Stimulus | BaseException) -> None:
        """What happened; an exception ends the worker, loudly, and its tasks run on."""
        self._queue.put_nowait(stimulus)

    def read_log(
        self, task: TaskId, epoch: int, cursor: LogCursor, *, follow: bool
    ) -> AsyncIterator[LogChunk]:
        runtime = self._settings.runtime
        return runtime.logs(TaskRef(runtime.home.cluster, task, epoch), cursor, follow=follow)
