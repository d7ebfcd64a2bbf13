"""The one door into the state: `handle(event, now) -> commands`.

Deterministic, without I/O, clock, randomness or logging. Handlers are named after their events.
What arrives late, twice or about a copy of long ago is ignored here, before it reaches the parts;
what the parts are asked to do is then always legal, or a bug that the lifecycle tables report.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eva.control import events as ev
from eva.control.commands import Command
from eva.control.events import Event
from eva.control.executor import Executor
from eva.control.interruptions import Interruptions
from eva.control.lifecycle import BEING_STOPPED, InstanceState, TaskState
from eva.control.offer import Offer
from eva.control.profiler import Profiler
from eva.control.provisioner import Provisioner
from eva.control.scheduler import OracleProvider, Scheduler, no_oracle
from eva.control.settings import ControllerSettings
from eva.control.state import Ending, Instance, Job, State, Task
from eva.control.throughput_monitor import ThroughputMonitor
from eva.model.catalog import Catalog
from eva.model.colocation import ThroughputTable
from eva.model.errors import InvariantError
from eva.model.ids import TaskId, task_id


class Controller:
    """Scheduler, Provisioner, Executor, ThroughputMonitor and Profiler around one state."""

    def __init__(
        self,
        catalog: Catalog,
        settings: ControllerSettings | None = None,
        oracle: OracleProvider = no_oracle,
    ) -> None:
        self.settings = settings or ControllerSettings()
        self.state = State(ThroughputTable(self.settings.default_throughput))
        self.interruptions = Interruptions(self.state, self.settings.spot_risk)
        self.offer = Offer(self.state, catalog, self.settings, self.interruptions)
        self.profiler = Profiler(self.state)
        self.monitor = ThroughputMonitor(self.state, self.profiler, self.settings)
        self.provisioner = Provisioner(self.state, self.interruptions)
        self.executor = Executor(self.state, self.provisioner, self.settings)
        self.scheduler = Scheduler(
            self.state, self.offer, self.provisioner, self.executor, self.monitor, oracle
        )
        self._handlers: dict[type, Callable[[Any, int, list[Command]], None]] = {
            ev.JobSubmitted: self._on_job_submitted,
            ev.JobCancelled: self._on_job_cancelled,
            ev.RoundDue: self._on_round_due,
            ev.PlanComputed: self._on_plan_computed,
            ev.PlanFailed: self._on_plan_failed,
            ev.InstanceAcquired: self._on_instance_acquired,
            ev.InstanceReady: self._on_instance_ready,
            ev.LaunchRefused: self._on_launch_refused,
            ev.CatalogChanged: self._on_catalog_changed,
            ev.InstanceLost: self._on_instance_lost,
            ev.InstanceTerminated: self._on_instance_terminated,
            ev.InstanceUnreachable: self._on_instance_unreachable,
            ev.SpotNotice: self._on_spot_notice,
            ev.TaskStarted: self._on_task_started,
            ev.TaskStartFailed: self._on_task_start_failed,
            ev.TaskCheckpointed: self._on_task_checkpointed,
            ev.CheckpointFailed: self._on_checkpoint_failed,
            ev.TaskStopped: self._on_task_stopped,
            ev.TaskExited: self._on_task_exited,
            ev.ThroughputReported: self._on_throughput_reported,
        }

    def handle(self, event: Event, now_ms: int) -> list[Command]:
        """Take in one event; what is to be done about it, in order."""
        state = self.state
        if now_ms < state.now_ms:
            raise InvariantError(
                f"time went backwards: {type(event).__name__} at {now_ms} ms after "
                f"{state.now_ms} ms; a driver must hand out times that never decrease"
            )
        state.now_ms = now_ms
        if state.began_ms is None:
            state.began_ms = now_ms
        out: list[Command] = []
        self._handlers[type(event)](event, now_ms, out)
        self.scheduler.plan_if_wanted(now_ms, out)
        return out

    # Users

    def _on_job_submitted(self, event: ev.JobSubmitted, now_ms: int, _out: list[Command]) -> None:
        state = self.state
        if event.job in state.jobs or event.job in state.records:
            return
        job = Job(event.job, event.spec, now_ms)
        job.tasks = tuple(
            Task(task_id(event.job, index), job, spec)
            for index, spec in enumerate(event.spec.tasks)
        )
        state.jobs[job.id] = job
        state.tasks.update((task.id, task) for task in job.tasks)
        if event.spec.max_duration_ms is not None:
            state.limited[job.id] = job
        if event.spec.spot:
            state.on_spot[job.id] = job
        state.events += 1
        state.dirty_tasks = True

    def _on_job_cancelled(self, event: ev.JobCancelled, now_ms: int, out: list[Command]) -> None:
        job = self.state.jobs.get(event.job)
        if job is not None:
            self.executor.cancel(job, now_ms, out)

    # Rounds

    def _on_round_due(self, _event: ev.RoundDue, now_ms: int, out: list[Command]) -> None:
        self.scheduler.begin_round(now_ms, out)

    def _on_plan_computed(self, event: ev.PlanComputed, now_ms: int, out: list[Command]) -> None:
        self.scheduler.adopt(event.round, event.plan, now_ms, out)

    def _on_plan_failed(self, event: ev.PlanFailed, _now_ms: int, _out: list[Command]) -> None:
        self.scheduler.give_up(event.round)

    # Instances

    def _on_instance_acquired(
        self, event: ev.InstanceAcquired, now_ms: int, _out: list[Command]
    ) -> None:
        self.provisioner.acquired(event.instance, _told(event.at_ms, now_ms))

    def _on_instance_ready(self, event: ev.InstanceReady, now_ms: int, out: list[Command]) -> None:
        instance = self.state.instances.get(event.instance)
        if instance is None or not self.provisioner.registered(instance, now_ms):
            return
        for job in _jobs_of(instance.bound):
            self.executor.advance_move(job, now_ms, out)
        self.executor.start_on(instance, now_ms, out)

    def _on_launch_refused(self, event: ev.LaunchRefused, now_ms: int, out: list[Command]) -> None:
        instance = self.state.instances.get(event.instance)
        if instance is not None and instance.ready_ms is None:
            self._clear(instance, f"launch of {instance.id} refused", now_ms, out)
            reason = f"launch refused: {event.reason}"
            self.provisioner.gone(instance, now_ms, reason, refused=True)
            if event.type_refused:
                self.offer.set_aside(instance.type, now_ms)
                self.state.replan = True

    def _on_catalog_changed(
        self, event: ev.CatalogChanged, _now_ms: int, _out: list[Command]
    ) -> None:
        self.offer.change(event.types, event.unfit)

    def _on_instance_lost(self, event: ev.InstanceLost, now_ms: int, out: list[Command]) -> None:
        instance = self.state.instances.get(event.instance)
        if instance is not None:
            self.interruptions.taken_back(instance, now_ms)
            self._vanish(instance, event.at_ms, "lost", now_ms, out)

    def _on_instance_terminated(
        self, event: ev.InstanceTerminated, now_ms: int, out: list[Command]
    ) -> None:
        instance = self.state.instances.get(event.instance)
        if instance is not None:
            self._vanish(instance, event.at_ms, "terminated", now_ms, out)

    def _on_instance_unreachable(
        self, event: ev.InstanceUnreachable, now_ms: int, out: list[Command]
    ) -> None:
        instance = self.state.instances.get(event.instance)
        if instance is None:
            return
        self._clear(instance, "unreachable", now_ms, out)
        for job in _jobs_of(instance.copies):
            reason = f"{instance.id} is unreachable"
            self.executor.stop(job, Ending.REQUEUE, reason, now_ms, out)
        self.provisioner.abandon(instance, out)

    def _on_spot_notice(self, event: ev.SpotNotice, now_ms: int, out: list[Command]) -> None:
        instance = self.state.instances.get(event.instance)
        if instance is None or instance.doomed or instance.state is InstanceState.TERMINATING:
            return
        self.interruptions.taken_back(instance, now_ms)
        reason = f"{instance.id} is taken back at {event.deadline_ms} ms"
        self.state.replan = self.state.replan or bool(instance.bound.keys() - instance.copies)
        self._clear(instance, reason, now_ms, out)
        staying = {n: t for n, t in instance.copies.items() if t.state not in BEING_STOPPED}
        for job in _jobs_of(staying):
            self.executor.evict(job, reason, now_ms, out)
        self.provisioner.drop(instance, out)

    # Tasks

    def _on_task_started(self, event: ev.TaskStarted, now_ms: int, _out: list[Command]) -> None:
        task = self._copy(event.task, event.epoch)
        if task is not None and task.state is TaskState.STARTING:
            self.executor.started(task, now_ms)

    def _on_task_start_failed(
        self, event: ev.TaskStartFailed, now_ms: int, out: list[Command]
    ) -> None:
        task = self._copy(event.task, event.epoch)
        if task is not None:
            self.executor.start_failed(task, event, now_ms, out)

    def _on_task_checkpointed(
        self, event: ev.TaskCheckpointed, now_ms: int, out: list[Command]
    ) -> None:
        task = self._copy(event.task, event.epoch)
        if task is not None:
            self.executor.stopped(task, f"{task.id} was checkpointed unasked", now_ms, out)

    def _on_checkpoint_failed(
        self, event: ev.CheckpointFailed, now_ms: int, out: list[Command]
    ) -> None:
        task = self._copy(event.task, event.epoch)
        if task is None or task.attempt != event.attempt:
            return
        if task.state is TaskState.CHECKPOINTING:
            self.executor.checkpoint_failed(task, now_ms, out)

    def _on_task_stopped(self, event: ev.TaskStopped, now_ms: int, out: list[Command]) -> None:
        task = self._copy(event.task, event.epoch)
        if task is not None:
            self.executor.stopped(task, f"{task.id} stopped unasked", now_ms, out)

    def _on_task_exited(self, event: ev.TaskExited, now_ms: int, out: list[Command]) -> None:
        task = self._copy(event.task, event.epoch)
        if task is not None:
            self.executor.exited(task, event.exit_code, now_ms, out)

    def _on_throughput_reported(
        self, event: ev.ThroughputReported, _now_ms: int, _out: list[Command]
    ) -> None:
        for sample in event.samples:
            task = self._copy(sample.task, sample.epoch)
            if task is not None:
                self.monitor.sampled(task, sample.iterations_per_s)

    # Details

    def _copy(self, name: TaskId, epoch: int) -> Task | None:
        """The task, if it has a copy and the event speaks of that copy."""
        task = self.state.tasks.get(name)
        return task if task is not None and task.epoch == epoch and task.has_copy else None

    def _clear(self, instance: Instance, reason: str, now_ms: int, out: list[Command]) -> None:
        """Nothing new comes here: turn away what is bound for the instance and not on it."""
        instance.doom()
        self.state.dirty_instances = True
        for task in tuple(instance.bound.values()):
            coming = task.instance is not instance or task.state is TaskState.CHECKPOINTING
            if coming and task.home is instance:
                self.executor.lose_home(task, reason, now_ms, out)

    def _vanish(
        self, instance: Instance, at_ms: int | None, ended_by: str, now_ms: int, out: list[Command]
    ) -> None:
        """The instance is gone, and every copy on it with it."""
        reason = f"{instance.id} {ended_by}"
        self._clear(instance, reason, now_ms, out)
        self.provisioner.gone(instance, _told(at_ms, now_ms), ended_by, refused=False)
        for task in tuple(instance.copies.values()):
            self.executor.copy_lost(task, reason, now_ms, out)


def _jobs_of(tasks: dict[TaskId, Task]) -> list[Job]:
    """The jobs of these tasks, once each, in order."""
    return list({task.job.id: task.job for task in tasks.values()}.values())


def _told(at_ms: int | None, now_ms: int) -> int:
    """The cloud's own time where it is told and not in the future, else the time of the event."""
    return now_ms if at_ms is None else min(now_ms, at_ms)
