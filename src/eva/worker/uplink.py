"""The worker's conversation with its master: dial, greet, talk until it breaks, dial again.

Reports leave in the order of their numbers, from the first unacknowledged one on, each time anew
after a lost connection. Orders and acknowledgements are put to the state machine as they come.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import structlog

from eva.adapters.grpc import translate
from eva.adapters.grpc.dial import (
    Identity,
    MasterSession,
    MasterUnreachableError,
    RefusedByMasterError,
    dial,
)
from eva.adapters.grpc.generated import worker_pb2 as pb
from eva.adapters.grpc.link import LinkTimings
from eva.adapters.identity.bootstrap import Bootstrap
from eva.model.errors import EvaError
from eva.model.ids import TaskId
from eva.ports.runtime import LogChunk, LogCursor, UnknownTaskError
from eva.ports.workers import Report, TaskSample, WorkerHello
from eva.worker import stimuli as st
from eva.worker.stimuli import Stimulus

Dial = Callable[[Bootstrap, Identity], AbstractAsyncContextManager[MasterSession]]

_log = structlog.get_logger("eva.worker")
_OUTGOING = 32  # messages that wait for the network; more, and their makers wait


class Host(Protocol):
    """What the uplink needs of the worker around it."""

    def hello(self) -> WorkerHello: ...

    def reports_after(self, number: int) -> list[tuple[int, Report]]: ...

    def samples(self, *, everything: bool) -> list[TaskSample]: ...

    def put(self, stimulus: Stimulus) -> None: ...

    def read_log(
        self, task: TaskId, epoch: int, cursor: LogCursor, *, follow: bool
    ) -> AsyncIterator[LogChunk]: ...


class Uplink:
    """`dialled` opens sessions; whoever measures the line listens in there."""

    def __init__(
        self,
        bootstrap: Bootstrap,
        identity: Identity,
        host: Host,
        redial_ms: int,
        dialled: Dial = dial,
    ) -> None:
        self._dial = dialled
        self._bootstrap = bootstrap
        self._identity = identity
        self._host = host
        self._redial_s = redial_ms / 1_000
        self._news = asyncio.Event()

    def news(self) -> None:
        """There is a new report."""
        self._news.set()

    async def run(self) -> None:
        """Until cancelled, or dismissed for good."""
        while True:
            try:
                async with self._dial(self._bootstrap, self._identity) as session:
                    await _Talk(session, self._host, self._news).run()
            except RefusedByMasterError as error:
                _log.warning("refused by the master", why=str(error), final=error.final)
                if error.final:
                    self._host.put(st.Dismissed())
                    return
            except MasterUnreachableError as error:
                _log.info("no master", why=str(error))
            await asyncio.sleep(self._redial_s)


class _Talk:
    """One session."""

    def __init__(self, session: MasterSession, host: Host, news: asyncio.Event) -> None:
        self._session = session
        self._host = host
        self._news = news
        self._outgoing: asyncio.Queue[pb.FromWorker] = asyncio.Queue(_OUTGOING)
        self._logs: dict[int, asyncio.Task[None]] = {}
        self._timings = LinkTimings()

    async def run(self) -> None:
        welcome = await self._session.greet(self._host.hello())
        self._timings = LinkTimings(heartbeat_ms=welcome.heartbeat_ms or 5_000)
        self._host.put(st.MasterHeard(welcome.dead_man_ms or None))
        _log.info("connected to the master", cluster=welcome.cluster)
        try:
            async with asyncio.TaskGroup() as parts:
                parts.create_task(self._write())
                parts.create_task(self._report())
                parts.create_task(self._beat())
                parts.create_task(self._read())
        except ExceptionGroup as errors:
            expected, others = errors.split(EvaError)
            if others is not None or expected is None:
                raise
            raise _first(expected) from None
        finally:
            for reading in self._logs.values():
                reading.cancel()
            await asyncio.gather(*self._logs.values(), return_exceptions=True)

    async def _write(self) -> None:
        while True:
            await self._session.write(await self._outgoing.get())

    async def _report(self) -> None:
        sent = 0
        while True:
            self._news.clear()
            for number, report in self._host.reports_after(sent):
                message = pb.FromWorker(report=translate.report_to_wire(number, report))
                await self._outgoing.put(message)
                sent = number
            await self._news.wait()

    async def _beat(self) -> None:
        everything = True
        while True:
            samples = self._host.samples(everything=everything)
            everything = False
            beat = pb.Heartbeat(samples=[translate.sample_to_wire(sample) for sample in samples])
            await self._outgoing.put(pb.FromWorker(heartbeat=beat))
            await asyncio.sleep(self._timings.heartbeat_ms / 1_000)

    async def _read(self) -> None:
        silence_s = max(self._timings.silence_ms, 4 * self._timings.heartbeat_ms) / 1_000
        while True:
            try:
                async with asyncio.timeout(silence_s):
                    message = await self._session.read()
            except TimeoutError:
                raise MasterUnreachableError(
                    f"the master has been silent for {silence_s:g} s: dialling again"
                ) from None
            self._host.put(st.MasterHeard())
            self._take(message)

    def _take(self, message: pb.FromMaster) -> None:
        match message.WhichOneof("message"):
            case "acknowledge":
                self._host.put(st.Acknowledged(message.acknowledge.number))
            case "log_request":
                request = message.log_request
                self._logs[request.stream] = asyncio.create_task(self._send_log(request))
            case "log_cancel":
                reading = self._logs.pop(message.log_cancel.stream, None)
                if reading is not None:
                    reading.cancel()
            case _:
                order = translate.order_from_wire(message)
                if order is not None:
                    self._host.put(order)

    async def _send_log(self, request: pb.LogRequest) -> None:
        stream = request.stream
        end = pb.LogEnd(stream=stream, status=pb.LOG_STATUS_DONE)
        reader = self._host.read_log(
            TaskId(request.task), request.epoch, LogCursor(request.cursor), follow=request.follow
        )
        try:
            async for chunk in reader:
                await self._outgoing.put(_log_data(stream, chunk))
        except UnknownTaskError as error:
            end.status, end.message = pb.LOG_STATUS_UNKNOWN_COPY, str(error)
        except EvaError as error:
            end.status, end.message = pb.LOG_STATUS_FAILED, str(error)
        await self._outgoing.put(pb.FromWorker(log_end=end))
        self._logs.pop(stream, None)


def _log_data(stream: int, chunk: LogChunk) -> pb.FromWorker:
    return pb.FromWorker(log_data=pb.LogData(stream=stream, data=chunk.data, cursor=chunk.cursor))


def _first(errors: ExceptionGroup[EvaError]) -> EvaError:
    """What ended the session: a refusal rather than what broke because of it."""
    found = [
        _first(error) if isinstance(error, ExceptionGroup) else error for error in errors.exceptions
    ]
    return next((each for each in found if isinstance(each, RefusedByMasterError)), found[0])
