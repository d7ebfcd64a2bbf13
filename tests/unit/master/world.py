"""A cloud and workers in memory, behind the real ports: what a master is tried with.

Instances come at once; their workers start tasks at once. Tasks run until `finish` says
otherwise. Everything keeps standing while masters come and go, as the real world does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from eva.master.clock import wall_ms
from eva.model.errors import EvaError
from eva.model.ids import InstanceId, TaskId
from eva.ports.cloud import (
    CloudInstance,
    CloudState,
    InstanceNotFoundError,
    LaunchIntent,
    Reaped,
)
from eva.ports.runtime import LOG_START, LogChunk, LogCursor
from eva.ports.workers import (
    Checkpointed,
    CheckpointOrder,
    Copy,
    CopyState,
    Exited,
    Order,
    Report,
    Started,
    StartOrder,
    StopOrder,
    Stopped,
    WorkerHello,
    WorkerListener,
    WorkerRefusedError,
)


@dataclass
class FakeWorker:
    instance: InstanceId
    world: World
    copies: dict[TaskId, int] = field(default_factory=dict)
    unsent: list[Report] = field(default_factory=list)
    started: list[StartOrder] = field(default_factory=list)
    connected: bool = False

    async def join(self, listener: WorkerListener) -> None:
        kind = self.world.cloud.intents[self.instance].type
        copies = tuple(Copy(t, e, CopyState.RUNNING) for t, e in sorted(self.copies.items()))
        hello = WorkerHello(
            self.instance, kind.capacity, "127.0.0.1", copies, "fake", "1", len(self.unsent)
        )
        try:
            orders = await listener.joined(hello)
        except WorkerRefusedError:
            self.copies.clear()
            return
        self.connected = True
        for order in orders:
            self.obey(order)
        await self.flush()

    def obey(self, order: Order) -> None:
        match order:
            case StartOrder(_, task, epoch):
                if self.copies.get(task) == epoch or (task, epoch) in self.world.over:
                    return
                assert all(task not in w.copies for w in self.world.workers.values()), task
                self.copies[task] = epoch
                self.started.append(order)
                self.world.runs.append((task, epoch))
                self.say(Started(task, epoch, 5))
            case CheckpointOrder(task, epoch, attempt):
                if self.copies.get(task) == epoch:
                    self.end(task, Checkpointed(task, epoch, attempt, checkpoint_ms=7))
            case StopOrder(task, epoch):
                if self.copies.get(task) == epoch:
                    self.end(task, Stopped(task, epoch))
                elif (task, epoch) not in self.world.over:
                    self.world.over.add((task, epoch))
                    self.say(Stopped(task, epoch))

    def end(self, task: TaskId, report: Report) -> None:
        self.world.over.add((task, self.copies.pop(task)))
        self.say(report)

    def say(self, report: Report) -> None:
        self.unsent.append(report)
        if self.connected:
            self.world.spawn(self.flush())

    async def flush(self) -> None:
        async with self.world.sending.setdefault(self.instance, asyncio.Lock()):
            while self.unsent and self.connected and self.world.listener is not None:
                await self.world.listener.reported(self.instance, self.unsent[0])
                self.unsent.pop(0)


@dataclass
class FakeCloud:
    world: World
    instances: dict[InstanceId, CloudInstance] = field(default_factory=dict)
    intents: dict[InstanceId, LaunchIntent] = field(default_factory=dict)
    refuse: list[EvaError] = field(default_factory=list)
    name: str = "fake"
    reap_after_ms: int = 0

    async def check(self) -> None: ...

    async def launch(self, intent: LaunchIntent) -> CloudInstance:
        if self.refuse:
            raise self.refuse.pop(0)
        known = self.instances.get(intent.instance)
        if known is not None:
            return known
        made = CloudInstance(
            intent.instance, "ref", intent.type.name, CloudState.RUNNING, launched_ms=wall_ms()
        )
        self.instances[intent.instance] = made
        self.intents[intent.instance] = intent
        worker = self.world.workers[intent.instance] = FakeWorker(intent.instance, self.world)
        if self.world.listener is not None:
            self.world.spawn(worker.join(self.world.listener))
        return made

    async def terminate(self, instance: InstanceId) -> CloudInstance:
        known = self.instances.get(instance)
        if known is None:
            raise InstanceNotFoundError(f"{instance} is not here")
        if known.state is not CloudState.TERMINATED:
            gone = replace(known, state=CloudState.TERMINATED, terminated_ms=wall_ms())
            self.instances[instance] = gone
            worker = self.world.workers.pop(instance, None)
            if worker is not None:
                worker.connected = False
                self.world.over.update(worker.copies.items())
                worker.copies.clear()
        return self.instances[instance]

    async def reap(self, known: Callable[[], Collection[InstanceId]]) -> Sequence[Reaped]:
        old_ms = wall_ms() - self.reap_after_ms
        old = [each for each in self.live if (self.instances[each].launched_ms or 0) <= old_ms]
        nobodys = [each for each in old if each not in known()]
        for each in nobodys:
            await self.terminate(each)
        return [Reaped("ref", each, "nobody knows of it") for each in nobodys]

    async def describe(self, instance: InstanceId) -> CloudInstance:
        return self.instances[instance]

    async def close(self) -> None: ...

    @property
    def live(self) -> tuple[InstanceId, ...]:
        return tuple(i.instance for i in self.instances.values() if i.state is CloudState.RUNNING)

    async def list(self) -> Sequence[CloudInstance]:
        return tuple(self.instances.values())


@dataclass
class FakeWorkers:
    world: World

    async def serve(self, listener: WorkerListener) -> None:
        self.world.listener = listener
        for worker in self.world.workers.values():
            self.world.spawn(worker.join(listener))

    def send(self, instance: InstanceId, order: Order) -> None:
        worker = self.world.workers.get(instance)
        if worker is not None and worker.connected:
            worker.obey(order)

    def connected(self) -> tuple[InstanceId, ...]:
        return tuple(w.instance for w in self.world.workers.values() if w.connected)

    def dismiss(self, instance: InstanceId) -> None: ...

    def bootstrap(self, instance: InstanceId) -> str:
        return f"token for {instance}"

    async def logs(
        self,
        instance: InstanceId,
        task: TaskId,
        epoch: int,
        cursor: LogCursor = LOG_START,
        *,
        follow: bool = True,
    ) -> AsyncIterator[LogChunk]:
        if not cursor:
            yield LogChunk(f"{task} epoch {epoch} on {instance}\n".encode(), LogCursor("end"))

    async def close(self) -> None:
        self.world.disconnect()


class World:
    def __init__(self) -> None:
        self.cloud = FakeCloud(self)
        self.link = FakeWorkers(self)
        self.workers: dict[InstanceId, FakeWorker] = {}
        self.listener: WorkerListener | None = None
        self.sending: dict[InstanceId, asyncio.Lock] = {}
        self.over: set[tuple[TaskId, int]] = set()
        self.runs: list[tuple[TaskId, int]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: object) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)  # type: ignore[call-overload]  # a coroutine
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def disconnect(self) -> None:
        """The master is gone; the workers go on."""
        self.listener = None
        for worker in self.workers.values():
            worker.connected = False
        for task in self._tasks:
            task.cancel()

    def worker_of(self, task: str) -> FakeWorker:
        return next(w for w in self.workers.values() if task in w.copies)

    def running(self, task: str) -> bool:
        return any(task in worker.copies for worker in self.workers.values())

    def finish(self, task: str, exit_code: int = 0) -> None:
        worker = self.worker_of(task)
        name = TaskId(task)
        worker.end(name, Exited(name, worker.copies[name], exit_code))
