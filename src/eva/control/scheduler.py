"""The Scheduler: rounds. A snapshot goes out with `ComputePlan`; a plan comes back and is adopted.

The world may have moved while the plan was computed, so adoption checks every placement against
the state it finds and leaves out what no longer holds: jobs that ended or are being moved,
instances that are gone, types that the cloud has refused meanwhile, placements that would exceed an
instance, and part of a gang without the rest. What is left out waits for the next round.

Snapshots share their parts as long as nothing changes, because policies remember by identity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from eva.control.commands import Command, ComputePlan
from eva.control.executor import Executor
from eva.control.lifecycle import JobState, TaskState
from eva.control.offer import Offer
from eva.control.provisioner import Provisioner
from eva.control.state import Ending, Instance, Job, State, Task
from eva.control.throughput_monitor import ThroughputMonitor
from eva.model.catalog import Catalog
from eva.model.ids import InstanceId, JobId, TaskId
from eva.model.oracle import NO_ORACLE, Oracle
from eva.model.plan import ClusterPlan, PlannedInstance
from eva.model.resources import NOTHING, Resources, total
from eva.model.snapshot import ClusterSnapshot, EventStatistics, InstanceView, TaskView

OracleProvider = Callable[[int], Oracle]


def no_oracle(_now_ms: int) -> Oracle:
    return NO_ORACLE


@dataclass(slots=True, eq=False)
class _Slot:
    """A planned instance while the plan is being checked: a present one, or one to launch."""

    planned: PlannedInstance
    instance: Instance | None
    coming: dict[TaskId, Task] = field(default_factory=dict)


class Scheduler:
    def __init__(
        self,
        state: State,
        offer: Offer,
        provisioner: Provisioner,
        executor: Executor,
        monitor: ThroughputMonitor,
        oracle: OracleProvider,
    ) -> None:
        self._state = state
        self._offer = offer
        self._provisioner = provisioner
        self._executor = executor
        self._monitor = monitor
        self._oracle = oracle
        self._tasks: tuple[TaskView, ...] = ()
        self._instances: tuple[InstanceView, ...] = ()
        self._catalog: Catalog | None = None  # of the last snapshot
        self._backing_off = False

    # A round begins

    def begin_round(self, now_ms: int, out: list[Command]) -> None:
        """Learn, enforce time limits, and ask for a plan unless one is still being computed."""
        state = self._state
        state.round += 1
        self._stop_overdue(now_ms, out)
        self._monitor.learn()
        self._offer.forget_expired(now_ms)
        if state.planning is not None:
            return
        state.replan = False
        snapshot = self.snapshot(now_ms)
        if not snapshot.tasks and not snapshot.instances:
            return
        state.planning = state.round
        state.events_asked = state.events
        out.append(ComputePlan(state.round, snapshot))

    def plan_if_wanted(self, now_ms: int, out: list[Command]) -> None:
        """Do not wait for the next round where something happened that cannot wait."""
        if self._state.replan and self._state.planning is None:
            self.begin_round(now_ms, out)

    def give_up(self, round_: int) -> None:
        """No plan will come for this round."""
        if round_ == self._state.planning:
            self._state.planning = None

    def snapshot(self, now_ms: int) -> ClusterSnapshot:
        state, catalog = self._state, self._offer.at(now_ms)
        if catalog is not self._catalog:
            self._catalog = catalog
            self._forget_risk()
        if state.dirty_tasks or self._backing_off:
            self._tasks = _same_or(self._tasks, self._view_tasks())
            state.dirty_tasks = False
        if state.dirty_instances:
            self._instances = _same_or(self._instances, self._view_instances(now_ms))
            state.dirty_instances = False
        began_ms = now_ms if state.began_ms is None else state.began_ms
        return ClusterSnapshot(
            now_ms,
            catalog,
            self._tasks,
            self._instances,
            state.table,
            EventStatistics(
                state.events,
                state.full_reconfigurations,
                now_ms - began_ms,
                state.events - state.events_planned,
            ),
            self._oracle(now_ms),
        )

    def _stop_overdue(self, now_ms: int, out: list[Command]) -> None:
        for job in tuple(self._state.limited.values()):
            limit_ms = job.spec.max_duration_ms
            if job.first_start_ms is None or limit_ms is None:
                continue
            if now_ms - job.first_start_ms >= limit_ms and job.ending not in _FINAL:
                reason = f"ran longer than its max_duration of {limit_ms} ms"
                if job.state is JobState.QUEUED:
                    self._executor.give_up(job, reason, now_ms)
                else:
                    self._executor.stop(job, Ending.FAIL, reason, now_ms, out)

    def _view_tasks(self) -> list[TaskView]:
        """Every task that a plan may speak of: waiting, or bound for an instance."""
        views = []
        self._backing_off = False
        for task in self._state.tasks.values():
            job, home = task.job, task.home
            if home is None:
                if task.state is not TaskState.WAITING or job.state in _HIDDEN:
                    continue
                if job.not_before_round > self._state.round:
                    self._backing_off = True
                    continue
                movable = True
            else:
                movable = self._movable(job)
            place = None if home is None else home.id
            view = task.view
            if view is None or view.instance != place or view.movable != movable:
                view = task.view = TaskView(task.id, job.id, task.spec, place, movable)
            views.append(view)
        return views

    def _forget_risk(self) -> None:
        """Where prices changed, the risk of what runs on spot may have."""
        for instance in self._state.instances.values():
            if instance.type.spot:
                instance.view = None
                self._state.dirty_instances = True

    def _view_instances(self, now_ms: int) -> list[InstanceView]:
        views = []
        for instance in self._state.instances.values():
            if instance.usable:
                if instance.view is None:
                    kind = self._offer.at_risk(instance.type, now_ms)
                    instance.view = InstanceView(instance.id, kind, tuple(sorted(instance.bound)))
                views.append(instance.view)
        return views

    # A plan comes back

    def adopt(self, round_: int, plan: ClusterPlan, now_ms: int, out: list[Command]) -> None:
        state = self._state
        if round_ != state.planning:
            return
        state.planning = None
        state.events_planned = state.events_asked
        state.decision, state.decision_round = plan.decision, round_
        slots, placed = self._match(plan, now_ms)
        changed = False
        if placed:
            _drop_partial_gangs(placed)
            self._drop_overflow(slots, placed)
            changed = self._carry_out(slots, now_ms, out)
        changed |= self._drop_unplanned(slots, out)
        self._note_reasons(plan)
        if changed and plan.decision.chosen.startswith("full"):
            state.full_reconfigurations += 1

    def _match(
        self, plan: ClusterPlan, now_ms: int
    ) -> tuple[list[_Slot], dict[JobId, list[_Slot]]]:
        """The plan's instances as found now, and what is to change, by job."""
        state = self._state
        slots: list[_Slot] = []
        changes: dict[JobId, list[_Slot]] = {}
        seen: set[TaskId] = set()
        for planned in plan.instances:
            slot = self._slot(planned, now_ms)
            if slot is None:
                continue
            instance = slot.instance
            slots.append(slot)
            if instance is not None and instance.shows(planned.tasks):
                continue  # as it is, which is mostly so
            for name in planned.tasks:
                task = state.tasks.get(name)
                if task is None or name in seen:
                    continue
                seen.add(name)
                if instance is not None and task.home is instance:
                    continue
                if self._placeable(task) and _hosts(slot.planned, task):
                    slot.coming[name] = task
                    changes.setdefault(task.job.id, []).append(slot)
        return slots, changes

    def _slot(self, planned: PlannedInstance, now_ms: int) -> _Slot | None:
        """A planned instance as it can be had now; None if it cannot."""
        if planned.instance is None:
            kind = self._offer.current(planned.type, now_ms)
            if kind is not None and kind is not planned.type:  # at another price, for one
                planned = replace(planned, type=kind)
            return None if kind is None else _Slot(planned, None)
        instance = self._state.instances.get(planned.instance)
        if instance is None or not instance.usable:
            return None
        instance.value_micros = planned.value_micros
        return _Slot(planned, instance)

    def _placeable(self, task: Task) -> bool:
        job = task.job
        if task.state is TaskState.WAITING:
            return job.state not in _HIDDEN and job.not_before_round <= self._state.round
        return self._movable(job)

    def _movable(self, job: Job) -> bool:
        """Nothing that runs is moved at prices that do not tell what moving saves."""
        return job.state is JobState.RUNNING and job.done == 0 and not self._state.prices_unfit

    def _drop_overflow(self, slots: list[_Slot], changes: dict[JobId, list[_Slot]]) -> None:
        """Leave out whole jobs, last come first, until no instance is promised too much."""
        while True:
            leaving: dict[InstanceId, Resources] = {}
            for slot in slots:
                for task in slot.coming.values():
                    if task.home is not None:
                        gone = leaving.get(task.home.id, NOTHING)
                        leaving[task.home.id] = gone.plus(task.demand(task.home))
            for slot in slots:
                if slot.coming and not _fits(slot, leaving):
                    victim = next(reversed(slot.coming.values())).job
                    _drop_job(victim, changes)
                    break
            else:
                return

    def _carry_out(self, slots: list[_Slot], now_ms: int, out: list[Command]) -> bool:
        """Launch, place what waits, then move what runs. Whether there was anything to do."""
        coming = [slot for slot in slots if slot.coming]
        homes: dict[JobId, dict[TaskId, Instance]] = {}
        for slot in coming:
            instance = self._instance_for(slot, now_ms, out)
            for task in slot.coming.values():
                homes.setdefault(task.job.id, {})[task.id] = instance
        jobs = [self._state.jobs[name] for name in homes]
        moving = [job for job in jobs if job.state is JobState.RUNNING]
        for job in jobs:
            if job not in moving:
                self._executor.assign(job, homes[job.id], now_ms)
        for job in moving:
            self._executor.move(job, homes[job.id], now_ms, out)
        for slot in coming:
            self._executor.start_on(self._instance_for(slot, now_ms, out), now_ms, out)
        return bool(coming)

    def _instance_for(self, slot: _Slot, now_ms: int, out: list[Command]) -> Instance:
        if slot.instance is None:
            slot.instance = self._provisioner.launch(slot.planned.type, now_ms, out)
            slot.instance.value_micros = slot.planned.value_micros
        return slot.instance

    def _drop_unplanned(self, slots: list[_Slot], out: list[Command]) -> bool:
        named = {slot.instance.id for slot in slots if slot.instance is not None}
        unplanned = [
            instance
            for instance in self._state.instances.values()
            if instance.usable and instance.id not in named and not instance.bound
        ]
        for instance in unplanned:
            self._provisioner.drop(instance, out)
        return bool(unplanned)

    def _note_reasons(self, plan: ClusterPlan) -> None:
        for unplaceable in plan.unplaceable:
            task = self._state.tasks.get(unplaceable.task)
            if task is not None and task.state is TaskState.WAITING:
                task.reason = unplaceable.reason


_HIDDEN = frozenset({JobState.STOPPING, JobState.MOVING})
_FINAL = frozenset({Ending.FAIL, Ending.CANCEL})


_View = TypeVar("_View", TaskView, InstanceView)


def _same_or(old: tuple[_View, ...], views: list[_View]) -> tuple[_View, ...]:
    """The old tuple if it holds the very same views."""
    if len(old) == len(views) and all(a is b for a, b in zip(old, views, strict=True)):
        return old
    return tuple(views)


def _hosts(planned: PlannedInstance, task: Task) -> bool:
    return task.spec.demand.on(planned.type.family) is not None


def _fits(slot: _Slot, leaving: dict[InstanceId, Resources]) -> bool:
    kind = slot.planned.type
    load = total(
        demand
        for task in slot.coming.values()
        if (demand := task.spec.demand.on(kind.family)) is not None
    )
    if slot.instance is not None:
        load = load.plus(slot.instance.reserved).minus(leaving.get(slot.instance.id, NOTHING))
    return load.fits_in(kind.capacity)


def _drop_partial_gangs(changes: dict[JobId, list[_Slot]]) -> None:
    """A job that waits is placed with all of its waiting tasks or not at all."""
    jobs = {
        task.job.id: task.job
        for slots in changes.values()
        for slot in slots
        for task in slot.coming.values()
    }
    for name, job in jobs.items():
        coming = {task for slot in changes[name] for task in slot.coming}
        if any(t.state is TaskState.WAITING and t.id not in coming for t in job.tasks):
            _drop_job(job, changes)


def _drop_job(job: Job, changes: dict[JobId, list[_Slot]]) -> None:
    for slot in changes.pop(job.id):
        for task in job.tasks:
            slot.coming.pop(task.id, None)
