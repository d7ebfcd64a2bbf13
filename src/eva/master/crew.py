"""The workers' side of the master: who is here, what each still has to do, what they report.

The controller's state is the only list of orders. When a worker joins, for the first time or
again, its copies are compared with the state: what should run and does not is started, what should
stop is stopped, what nobody knows is stopped too. So it does not matter which side was away.

A worker is believed about its own copies only. Its certificate says which instance it is, and what
it reports of a task that is not there, or not in that epoch, is heard by nobody: a stolen
certificate is no way to end, or to start twice, what runs elsewhere.

A gang starts together: a task is told its place, and thereby to start, when every sibling has a
place on an instance whose address is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import structlog

from eva.control import commands as cmd
from eva.control.events import (
    Event,
    InstanceReady,
    InstanceUnreachable,
    ThroughputReported,
    ThroughputSample,
)
from eva.control.lifecycle import InstanceState, TaskState
from eva.control.state import Instance, Task
from eva.master.clock import Clock
from eva.master.logs import LogKeeper
from eva.master.measured import Measured
from eva.master.memory import Memory
from eva.master.runs import start_order, task_run
from eva.master.secrets import Vault
from eva.model.errors import EvaError, OperatorError
from eva.model.ids import InstanceId, TaskId
from eva.ports.workers import (
    Checkpointed,
    CheckpointOrder,
    Copy,
    Exited,
    Order,
    PrepareOrder,
    Report,
    SpotNoticed,
    Started,
    StopOrder,
    Stopped,
    TaskSample,
    WorkerHello,
    WorkerRefusedError,
    Workers,
    event_of,
)

_log = structlog.get_logger("eva.workers")
_PRESENT = frozenset(
    {
        InstanceState.REQUESTED,
        InstanceState.ACQUIRED,
        InstanceState.READY,
        InstanceState.DRAINING,
    }
)


@dataclass(slots=True)
class Crew:
    """`eva.ports.workers.WorkerListener`, and orders on their way out."""

    memory: Memory
    workers: Workers
    vault: Vault
    logs: LogKeeper
    measured: Measured
    clock: Clock
    post: Callable[[Event], Awaitable[object]]
    addresses: dict[InstanceId, str] = field(default_factory=dict)
    silent_since: dict[InstanceId, int] = field(default_factory=dict)
    _samples: dict[TaskId, ThroughputSample] = field(default_factory=dict)
    _told: dict[TaskId, ThroughputSample] = field(default_factory=dict)

    def expect_everybody(self) -> None:
        """After a start nobody is here yet, and all have their time to come back."""
        now_ms = self.clock()
        for instance in self.memory.state.instances.values():
            if instance.ready_ms is not None:
                self.silent_since[instance.id] = now_ms

    # What workers say

    async def joined(self, hello: WorkerHello) -> Sequence[Order]:
        instance = self.memory.state.instances.get(hello.instance)
        if instance is None or instance.doomed or instance.state not in _PRESENT:
            raise WorkerRefusedError(
                f"instance {hello.instance} is not part of this cluster any more: end it"
            )
        self.silent_since.pop(instance.id, None)
        self.addresses[instance.id] = hello.address
        if instance.ready_ms is None:
            await self.post(InstanceReady(instance.id))
        _log.info("worker here", instance=instance.id, copies=len(hello.copies))
        orders = self._outstanding(instance, hello.copies)
        self._follow_running(instance)
        self._release_waiting_gangs(instance)
        return orders

    async def reported(self, instance: InstanceId, report: Report) -> None:
        if not isinstance(report, SpotNoticed) and not self._is_there(
            instance, report.task, report.epoch
        ):
            # Late news of a copy that is no more is nothing unusual, and is answered all the same.
            _log.info("report not heard", instance=instance, task=report.task, epoch=report.epoch)
            return
        self.measured.reported(self.memory.state, report)
        if isinstance(report, (Exited, Checkpointed, Stopped)):
            await self.logs.finish(report.task, report.epoch)
        await self.post(event_of(instance, report))
        if isinstance(report, Started):
            self.logs.follow(instance, report.task, report.epoch)

    def sampled(self, instance: InstanceId, samples: Sequence[TaskSample]) -> None:
        for sample in samples:
            known = self._is_there(instance, sample.task, sample.epoch)
            if known and sample.rate is not None:
                self._samples[sample.task] = ThroughputSample(
                    sample.task, sample.epoch, sample.rate
                )

    def left(self, instance: InstanceId) -> None:
        if instance in self.memory.state.instances:
            self.silent_since.setdefault(instance, self.clock())

    def _is_there(self, name: InstanceId, task: TaskId, epoch: int) -> bool:
        """Whether this is a copy that we know on that instance."""
        instance = self.memory.state.instances.get(name)
        copy = None if instance is None else instance.copies.get(task)
        return copy is not None and copy.epoch == epoch

    # What is drawn from it

    def report(self) -> ThroughputReported | None:
        """The samples that changed since the last round."""
        tasks = self.memory.state.tasks
        self._samples = {name: s for name, s in self._samples.items() if name in tasks}
        fresh = [s for name, s in self._samples.items() if self._told.get(name) != s]
        self._told = dict(self._samples)
        return ThroughputReported(tuple(fresh)) if fresh else None

    def overdue(self, unreachable_ms: int, setup_limit_ms: int) -> list[InstanceUnreachable]:
        """Instances that have been silent for too long, or never spoke at all."""
        now_ms = self.clock()
        found = []
        for instance in self.memory.state.instances.values():
            if instance.doomed or instance.state not in _PRESENT:
                continue
            since = self.silent_since.get(instance.id)
            gone_silent = since is not None and now_ms - since >= unreachable_ms
            never_came = (
                instance.ready_ms is None and now_ms - instance.launched_ms >= setup_limit_ms
            )
            if gone_silent or never_came:
                found.append(InstanceUnreachable(instance.id))
        return found

    def forget(self, instance: InstanceId) -> None:
        """It is gone; never speak to it again."""
        self.addresses.pop(instance, None)
        self.silent_since.pop(instance, None)
        self.workers.dismiss(instance)

    # Orders

    def prepare(self, command: cmd.PrepareTask) -> None:
        state = self.memory.state
        task, instance = state.tasks.get(command.task), state.instances.get(command.instance)
        if task is not None and instance is not None:
            try:
                run = task_run(task, instance, self.memory.jobs[task.job.id], self.vault)
            except OperatorError as error:  # a hint only; the start will say it again
                _log.error("order not given", task=task.id, reason=str(error))
                return
            self.workers.send(instance.id, PrepareOrder(task.job.id, task.id, run))

    def start(self, command: cmd.StartTask) -> None:
        task = self.memory.state.tasks.get(command.task)
        if task is not None:
            self._start_job_of(task)

    def checkpoint(self, command: cmd.CheckpointTask) -> None:
        order = CheckpointOrder(command.task, command.epoch, command.attempt)
        self.workers.send(command.instance, order)

    def stop(self, command: cmd.StopTask) -> None:
        self.workers.send(command.instance, StopOrder(command.task, command.epoch))

    async def repeat(self) -> None:
        """Say again what has not been answered: an order may get lost while a worker joins.

        One worker after the other, so that a thousand of them keep nobody else waiting.
        """
        for name in self.workers.connected():
            instance = self.memory.state.instances.get(name)
            for task in () if instance is None else tuple(instance.copies.values()):
                order = self._owed(task, present=True)
                if order is not None:
                    self.workers.send(name, order)
            await asyncio.sleep(0)

    def _start_job_of(self, task: Task) -> None:
        for sibling in task.job.tasks:
            if sibling.state is TaskState.STARTING and sibling.instance is not None:
                order = self._start_order(sibling)
                if order is not None:
                    self.workers.send(sibling.instance.id, order)

    def _start_order(self, task: Task) -> Order | None:
        """None while it cannot be given: one job whose secrets cannot be opened is no reason for
        all others to lose their master.
        """
        try:
            return start_order(task, self.memory.jobs, self.vault, self.addresses)
        except OperatorError as error:
            _log.error("order not given", task=task.id, reason=str(error))
            return None

    def _outstanding(self, instance: Instance, copies: Sequence[Copy]) -> list[Order]:
        """Everything that this worker has to do, judged by what it has."""
        there = {(copy.task, copy.epoch) for copy in copies}
        orders: list[Order] = []
        for task in instance.copies.values():
            placement = (task.id, task.epoch)
            present = placement in there
            there.discard(placement)
            order = self._owed(task, present=present)
            if order is not None:
                orders.append(order)
        orders.extend(StopOrder(task, epoch) for task, epoch in sorted(there))
        return orders

    def _owed(self, task: Task, *, present: bool) -> Order | None:
        if task.state is TaskState.STARTING:
            return self._start_order(task)
        if task.state is TaskState.STOPPING or not present:
            return StopOrder(task.id, task.epoch)  # its answer is the proof that nothing is there
        if task.state is TaskState.CHECKPOINTING:
            return CheckpointOrder(task.id, task.epoch, task.attempt)
        return None

    def _release_waiting_gangs(self, instance: Instance) -> None:
        """Siblings elsewhere may have waited for the address of this instance."""
        for task in tuple(instance.copies.values()):
            if len(task.job.tasks) > 1:
                self._start_job_of(task)

    def _follow_running(self, instance: Instance) -> None:
        for task in instance.copies.values():
            if task.state is not TaskState.STARTING:
                self.logs.follow(instance.id, task.id, task.epoch)


@dataclass(frozen=True, slots=True)
class Orders:
    """Commands about tasks to the crew, by kind."""

    crew: Crew

    def __call__(self, command: cmd.Command) -> None:
        try:
            match command:
                case cmd.PrepareTask():
                    self.crew.prepare(command)
                case cmd.StartTask():
                    self.crew.start(command)
                case cmd.CheckpointTask():
                    self.crew.checkpoint(command)
                case cmd.StopTask():
                    self.crew.stop(command)
                case _:
                    raise OperatorError(f"{type(command).__name__} is no order to a worker")
        except EvaError as error:
            _log.error("order not given", command=type(command).__name__, reason=str(error))
            raise
