"""One worker's stream, on the master's side: greeting, reading, writing, and logs passing through.

All writing goes through one queue and one task, so that orders leave in the order in which they
were given, and giving one never blocks the master.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import grpc

from eva.adapters.grpc import translate
from eva.adapters.grpc.generated import worker_pb2 as pb
from eva.adapters.grpc.link import OLDEST_PROTOCOL, PROTOCOL, LinkTimings
from eva.adapters.identity.authority import Authority
from eva.adapters.identity.tokens import TokenRefusedError
from eva.model.ids import InstanceId, TaskId
from eva.ports.runtime import LogChunk, LogCursor
from eva.ports.workers import (
    NoSuchCopyError,
    WorkerAwayError,
    WorkerListener,
    WorkerRefusedError,
)

LOG_CHUNKS_HELD = 64  # per reader; one who is slower than that is caught up with by asking again


def refusal(reason: pb.RefusalReason, message: str) -> pb.Refusal:
    return pb.Refusal(reason=reason, message=message)


class _Overrun:
    """Marks the place in a log at which its reader fell behind."""


LogItem = LogChunk | pb.LogEnd | _Overrun


class Session:
    def __init__(
        self,
        context: Any,
        authority: Authority,
        listener: WorkerListener,
        timings: LinkTimings,
    ) -> None:
        self.instance = InstanceId("")
        self._context = context
        self._authority = authority
        self._listener = listener
        self._timings = timings
        self._outgoing: asyncio.Queue[pb.FromMaster | None] = asyncio.Queue()
        self._reports: asyncio.Queue[pb.NumberedReport] = asyncio.Queue()
        self._logs: dict[int, asyncio.Queue[LogItem]] = {}
        self._streams = itertools.count(1)
        self._open = True

    # Greeting

    async def greet(self, sessions: dict[InstanceId, Session]) -> bool:
        """Let the worker in and take our place among `sessions`, or turn it away."""
        first = await self._read()
        if first is None or first.WhichOneof("message") != "hello":
            return False
        problem = self._problem(first.hello)
        if problem is not None:
            await self._context.write(pb.FromMaster(refusal=problem))
            return False
        self.instance = InstanceId(first.hello.instance)
        try:
            orders = await self._listener.joined(translate.hello_from_wire(first.hello))
        except WorkerRefusedError as error:
            said = refusal(pb.REFUSAL_REASON_UNKNOWN_INSTANCE, str(error))
            await self._context.write(pb.FromMaster(refusal=said))
            return False
        # From here to the end of this function nothing waits: no order is lost or overtaken.
        older = sessions.get(self.instance)
        if older is not None:
            older.end()
        sessions[self.instance] = self
        self.write(pb.FromMaster(welcome=self._welcome()))
        for order in orders:
            self.write(translate.order_to_wire(order))
        return True

    def _welcome(self) -> pb.Welcome:
        return pb.Welcome(
            protocol=PROTOCOL,
            cluster=self._authority.cluster,
            heartbeat_ms=self._timings.heartbeat_ms,
            dead_man_ms=self._timings.dead_man_ms,
        )

    def _problem(self, hello: pb.Hello) -> pb.Refusal | None:
        names = self._context.auth_context().get("x509_common_name", ())
        certified = names[0].decode() if names else None
        if certified != hello.instance:
            whose = f"is for {certified}" if certified else "is missing"
            return refusal(
                pb.REFUSAL_REASON_WRONG_INSTANCE,
                f"{hello.instance} says hello, and its certificate {whose}: join first",
            )
        if hello.protocol < OLDEST_PROTOCOL:
            return refusal(
                pb.REFUSAL_REASON_PROTOCOL,
                f"protocol {hello.protocol} is too old, {OLDEST_PROTOCOL} is needed: install the "
                "master's version of Eva on the instance",
            )
        try:
            self._authority.check(InstanceId(hello.instance))
        except TokenRefusedError as error:
            return refusal(pb.REFUSAL_REASON_REVOKED, str(error))
        return None

    # The stream

    async def run(self) -> None:
        """Until the worker is gone, silent, replaced or turned away."""
        parts = [
            asyncio.create_task(part)
            for part in (self._write_all(), self._read_all(), self._take_reports())
        ]
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._open = False
            for part in parts:
                part.cancel()
            ended = await asyncio.gather(*parts, return_exceptions=True)
            away = pb.LogEnd(status=pb.LOG_STATUS_UNSPECIFIED)
            for queue in self._logs.values():
                _push(queue, away)
        for error in ended:
            if isinstance(error, Exception) and not isinstance(error, grpc.aio.BaseError):
                raise error

    def write(self, message: pb.FromMaster) -> None:
        self._outgoing.put_nowait(message)

    def end(self) -> None:
        self._outgoing.put_nowait(None)

    def turn_away(self, said: pb.Refusal) -> None:
        self.write(pb.FromMaster(refusal=said))
        self.end()

    async def _write_all(self) -> None:
        while True:
            message = await self._outgoing.get()
            if message is None:
                return
            await self._context.write(message)

    async def _read(self) -> pb.FromWorker | None:
        """The next message; None when there will be none."""
        try:
            async with asyncio.timeout(self._timings.silence_ms / 1_000):
                message = await self._context.read()
        except TimeoutError:
            return None
        return message if isinstance(message, pb.FromWorker) else None

    async def _read_all(self) -> None:
        while (message := await self._read()) is not None:
            match message.WhichOneof("message"):
                case "report":
                    self._reports.put_nowait(message.report)
                case "heartbeat":
                    samples = [translate.sample_from_wire(s) for s in message.heartbeat.samples]
                    self._listener.sampled(self.instance, samples)
                    self.write(pb.FromMaster(heartbeat_reply=pb.HeartbeatReply()))
                case "log_data":
                    data = message.log_data
                    chunk = LogChunk(data.data, LogCursor(data.cursor))
                    self._pass_log(data.stream, chunk)
                case "log_end":
                    self._pass_log(message.log_end.stream, message.log_end)

    async def _take_reports(self) -> None:
        """One after the other, beside the reading: a listener may wait for a copy's last words."""
        while True:
            message = await self._reports.get()
            report = translate.report_from_wire(message)
            if report is not None:
                await self._listener.reported(self.instance, report)
            self.write(pb.FromMaster(acknowledge=pb.Acknowledge(number=message.number)))

    # Logs

    def _pass_log(self, stream: int, item: LogItem) -> None:
        queue = self._logs.get(stream)
        if queue is None:
            return
        if queue.qsize() >= LOG_CHUNKS_HELD and isinstance(item, LogChunk):
            del self._logs[stream]
            self.write(pb.FromMaster(log_cancel=pb.LogCancel(stream=stream)))
            item = _Overrun()
        _push(queue, item)

    async def logs(
        self, task: TaskId, epoch: int, cursor: LogCursor, *, follow: bool
    ) -> AsyncIterator[LogChunk]:
        while True:
            item: LogItem = _Overrun()
            async with contextlib.aclosing(
                self._one_log(task, epoch, cursor, follow=follow)
            ) as items:
                async for item in items:
                    if isinstance(item, LogChunk):
                        cursor = item.cursor
                        yield item
            if isinstance(item, pb.LogEnd):
                self._judge_end(item, task, epoch)
                return

    async def _one_log(
        self, task: TaskId, epoch: int, cursor: LogCursor, *, follow: bool
    ) -> AsyncGenerator[LogItem, None]:
        """What comes, up to and with the first item that is no chunk."""
        if not self._open:
            yield pb.LogEnd(status=pb.LOG_STATUS_UNSPECIFIED)
            return
        stream = next(self._streams)
        queue: asyncio.Queue[LogItem] = asyncio.Queue()
        self._logs[stream] = queue
        request = pb.LogRequest(stream=stream, task=task, epoch=epoch, cursor=cursor, follow=follow)
        self.write(pb.FromMaster(log_request=request))
        try:
            item: LogItem | None = None
            while item is None or isinstance(item, LogChunk):
                item = await queue.get()
                yield item
        finally:
            if self._logs.pop(stream, None) is not None:
                self.write(pb.FromMaster(log_cancel=pb.LogCancel(stream=stream)))

    def _judge_end(self, end: pb.LogEnd, task: TaskId, epoch: int) -> None:
        if end.status == pb.LOG_STATUS_DONE:
            return
        if end.status == pb.LOG_STATUS_UNKNOWN_COPY:
            raise NoSuchCopyError(
                f"{self.instance} has no output of {task} (epoch {epoch}): the copy ended and was "
                "removed, or never came there"
            )
        raise WorkerAwayError(
            f"the output of {task} on {self.instance} broke off "
            f"({end.message or 'the connection is gone'}): go on from the cursor that was reached"
        )


def _push(queue: asyncio.Queue[LogItem], item: LogItem) -> None:
    queue.put_nowait(item)  # bounded by `_pass_log`
