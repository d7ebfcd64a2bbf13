"""A master as small as can be: it keeps what workers report, and orders what a test tells it to.

Everything under it is real: TLS, gRPC, the local cloud, worker processes, task processes.
"""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from eva.adapters.directory import DirectoryStorage
from eva.adapters.grpc.link import LinkTimings
from eva.adapters.grpc.server import GrpcWorkers, Listening
from eva.adapters.identity.authority import Authority
from eva.adapters.local import LocalCloud
from eva.adapters.local.cloud import WORKER
from eva.model.catalog import InstanceType
from eva.model.ids import InstanceId, JobId, TaskId
from eva.model.resources import Resources
from eva.ports.cloud import CloudState, LaunchIntent
from eva.ports.runtime import Argv
from eva.ports.workers import (
    CheckpointPolicy,
    Order,
    Report,
    StartOrder,
    TaskRun,
    TaskSample,
    WorkerHello,
    WorkerRefusedError,
)

T = TypeVar("T")
JOB = JobId("job")
TASK = TaskId("job.0")
KIND = InstanceType("c7i.2xlarge", "c7i", Resources(2, 8_000, 16_384), 357_000)
PATIENCE_S = 30.0
TIMINGS = LinkTimings(heartbeat_ms=200, silence_ms=5_000, dead_man_ms=60_000)
JOBS = Path(__file__).parent / "jobs"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class Listener:
    """What a master would do about workers, written down."""

    outstanding: dict[InstanceId, list[Order]] = field(default_factory=dict)
    hellos: list[WorkerHello] = field(default_factory=list)
    reports: list[tuple[InstanceId, Report]] = field(default_factory=list)
    samples: dict[TaskId, TaskSample] = field(default_factory=dict)
    gone: list[InstanceId] = field(default_factory=list)
    refused: set[InstanceId] = field(default_factory=set)
    deaf: asyncio.Event = field(default_factory=asyncio.Event)  # set: reports are not acknowledged
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def joined(self, hello: WorkerHello) -> Sequence[Order]:
        if hello.instance in self.refused:
            raise WorkerRefusedError(f"{hello.instance} is not of this cluster")
        self.hellos.append(hello)
        self.changed.set()
        return self.outstanding.get(hello.instance, [])

    async def reported(self, instance: InstanceId, report: Report) -> None:
        self.reports.append((instance, report))
        self.changed.set()
        if self.deaf.is_set():
            await asyncio.Event().wait()  # a master that dies before the disk has it

    def sampled(self, instance: InstanceId, samples: Sequence[TaskSample]) -> None:
        self.samples.update((sample.task, sample) for sample in samples)
        self.changed.set()

    def left(self, instance: InstanceId) -> None:
        self.gone.append(instance)
        self.changed.set()


class SmallMaster:
    def __init__(
        self, folder: Path, runtime: str = "process", metadata: str = "", words: Sequence[str] = ()
    ) -> None:
        """`words` are more for the workers' command line."""
        self.folder = folder
        self.runtime = runtime
        self.metadata = metadata
        self.cluster = f"test-{uuid.uuid4().hex[:8]}"  # containers are found by it
        self.storage = DirectoryStorage(folder / "storage")
        worker = (*WORKER, "--redial-ms", "100", *words)
        self.cloud = LocalCloud(folder / "cloud", now_ms, worker=worker)
        self.listener = Listener()
        self.port = self.join_port = 0
        self.workers: GrpcWorkers

    async def start(self, timings: LinkTimings = TIMINGS) -> None:
        """Begin to serve, on the ports of before if there was a before."""
        self.authority = Authority(self.folder / "identity", self.cluster, ["127.0.0.1"], now_ms())
        where = Listening(
            port=self.port,
            join_port=self.join_port,
            storage=str(self.folder / "storage"),
            runtime=self.runtime,
            metadata=self.metadata,
        )
        self.workers = GrpcWorkers(self.authority, now_ms, where, timings)
        await self.workers.serve(self.listener)
        self.port, self.join_port = self.workers.port, self.workers.join_port

    async def stop(self) -> None:
        await self.workers.close()
        self.authority.close()

    async def restart(self) -> None:
        """A new process would find the same identity, and nothing in its hands."""
        await self.stop()
        self.listener = Listener(outstanding=self.listener.outstanding)
        await self.start()

    async def launch(self, name: str) -> InstanceId:
        instance = InstanceId(name)
        bootstrap = self.workers.bootstrap(instance)
        await self.cloud.launch(LaunchIntent(instance, KIND, bootstrap))
        await self.until(lambda: instance in self.workers.connected() or None)
        return instance

    async def terminate_all(self) -> None:
        for instance in await self.cloud.list():
            await self.cloud.terminate(instance.instance)
        async with asyncio.timeout(PATIENCE_S):
            while any(  # noqa: ASYNC110  a cloud tells nobody
                i.state is not CloudState.TERMINATED for i in await self.cloud.list()
            ):
                await asyncio.sleep(0.05)

    async def until(self, look: Callable[[], T | None]) -> T:
        """What `look` finds, as soon as it finds something."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while (found := look()) is None:
                    self.listener.changed.clear()
                    # Not all that is looked at tells the listener: look again after a while too.
                    waiting = asyncio.create_task(self.listener.changed.wait())
                    await asyncio.wait({waiting}, timeout=0.1)
                    waiting.cancel()
                return found
        except TimeoutError:
            logs = [p.read_text()[-3_000:] for p in self.folder.glob("cloud/*/instance.log")]
            said = "\n".join([f"never came: {self.listener.reports}", *logs])
            raise AssertionError(said) from None

    async def report(self, kind: type[T], task: TaskId = TASK, epoch: int = 1) -> T:
        """The first report of its kind about a copy."""

        def look() -> T | None:
            for _, report in self.listener.reports:
                if isinstance(report, kind) and (
                    (getattr(report, "task", None), getattr(report, "epoch", None)) == (task, epoch)
                ):
                    return report
            return None

        return await self.until(look)

    def send(self, instance: InstanceId, order: Order) -> None:
        self.workers.send(instance, order)

    def worker_pid(self, instance: InstanceId) -> int:
        return int((self.folder / "cloud" / instance / "worker.pid").read_text())

    async def output(self, instance: InstanceId, task: TaskId = TASK, epoch: int = 1) -> bytes:
        chunks = self.workers.logs(instance, task, epoch, follow=False)
        return b"".join([chunk.data async for chunk in chunks])


def start(name: str, *words: str, epoch: int = 1, run: TaskRun | None = None) -> StartOrder:
    """An order to run one of the programs in `jobs`."""
    base = run or TaskRun(None, Resources(0, 1_000, 512))
    program = Argv((sys.executable, str(JOBS / name), *words))
    fields = {spec: getattr(base, spec) for spec in base.__slots__}
    return StartOrder(JOB, TASK, epoch, TaskRun(**{**fields, "program": program}))


def with_policy(policy: CheckpointPolicy) -> TaskRun:
    return TaskRun(None, Resources(0, 1_000, 512), checkpoint=policy)
