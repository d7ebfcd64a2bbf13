"""Bugs planted on purpose: each is a switch that breaks one promise of the controller.

The seeded suite is only worth its time if it finds them. `FOUND_BY` records, for each, a seed that
does; `make test` replays those, and `python -m tests.simulation.soak --mutations` searches anew
(after a change to the controller, the simulator or the scenarios, record what it prints).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from eva.control.commands import Command, LaunchInstance, StartTask
from eva.control.controller import Controller
from eva.control.events import InstanceLost
from eva.control.executor import Executor
from eva.control.interruptions import Interruptions
from eva.control.ledger import Ledger
from eva.control.lifecycle import JobState, TaskState
from eva.control.offer import Offer
from eva.control.provisioner import Provisioner
from eva.control.scheduler import Scheduler
from eva.control.state import Ending, Job, Task
from eva.model.resources import Demand
from eva.model.spot import on_demand

Out = list[Command]
_Patch = tuple[type, str, Callable[..., Any]]


def _epoch_not_bumped() -> _Patch:
    right = Executor.try_start

    def wrong(self: Executor, task: Task, now_ms: int, out: Out) -> None:
        before = task.epoch
        right(self, task, now_ms, out)
        if task.epoch > before > 0:
            task.epoch = before
            last = out[-1]
            assert isinstance(last, StartTask)
            out[-1] = replace(last, epoch=before)

    return Executor, "try_start", wrong


def _stale_epoch_accepted() -> _Patch:
    def wrong(self: Controller, name: Any, epoch: int) -> Task | None:
        task = self.state.tasks.get(name)
        return task if task is not None and task.has_copy else None

    return Controller, "_copy", wrong


def _started_before_siblings_stopped() -> _Patch:
    right = Executor.try_start

    def wrong(self: Executor, task: Task, now_ms: int, out: Out) -> None:
        counted, task.job.being_stopped = task.job.being_stopped, 0
        right(self, task, now_ms, out)
        task.job.being_stopped = counted

    return Executor, "try_start", wrong


def _terminated_with_a_task_on_it() -> _Patch:
    def wrong(self: Provisioner, instance: Any, out: Out) -> None:
        self._terminate(instance, out)

    return Provisioner, "drop", wrong


def _launched_twice() -> _Patch:
    right = Provisioner.launch

    def wrong(self: Provisioner, kind: Any, now_ms: int, out: Out) -> Any:
        instance = right(self, kind, now_ms, out)
        if len(self._state.instances) == 3:
            out.append(LaunchInstance(instance.id, kind))
        return instance

    return Provisioner, "launch", wrong


def _job_lost_on_refusal() -> _Patch:
    def wrong(self: Controller, event: Any, now_ms: int, out: Out) -> None:
        instance = self.state.instances.get(event.instance)
        if instance is not None and instance.ready_ms is None:
            self.provisioner.gone(instance, now_ms, "launch refused", refused=True)

    return Controller, "_on_launch_refused", wrong


def _billed_from_launch() -> _Patch:
    right = Ledger.acquire

    def wrong(self: Ledger, instance: Any, at_ms: int, *, confirmed: bool) -> None:
        account = self.open.get(instance)
        since_ms = at_ms if account is None else account.launched_ms
        right(self, instance, since_ms, confirmed=confirmed)

    return Ledger, "acquire", wrong


def _room_freed_before_proof_of_stop() -> _Patch:
    right = Executor.advance_move

    def wrong(self: Executor, job: Any, now_ms: int, out: Out) -> None:
        right(self, job, now_ms, out)
        if job.state is JobState.MOVING:
            for task in job.tasks:
                if task.instance is not None:
                    self.start_on(task.instance, now_ms, out)
                    self.stopped(task, "surely", now_ms, out)

    return Executor, "advance_move", wrong


def _duplicates_not_recognised() -> _Patch:
    def wrong(self: Controller, event: Any, now_ms: int, out: Out) -> None:
        task = self._copy(event.task, event.epoch)
        if task is not None:
            self.executor.started(task, now_ms)

    return Controller, "_on_task_started", wrong


def _late_word_of_an_earlier_attempt_accepted() -> _Patch:
    def wrong(self: Controller, event: Any, now_ms: int, out: Out) -> None:
        task = self._copy(event.task, event.epoch)
        if task is not None and task.state is TaskState.CHECKPOINTING:
            self.executor.checkpoint_failed(task, now_ms, out)

    return Controller, "_on_checkpoint_failed", wrong


def _drained_instance_forgotten() -> _Patch:
    return Provisioner, "copy_left", lambda self, instance, out: None


def _drained_instance_not_retained() -> _Patch:
    return Provisioner, "retain", lambda self, instance: True


def _overflow_ignored_after_a_failed_move() -> _Patch:
    return Executor, "_resolve_overflow", lambda self, instance, now_ms, out: None


def _silence_taken_for_death() -> _Patch:
    def wrong(self: Controller, event: Any, now_ms: int, out: Out) -> None:
        self._on_instance_lost(InstanceLost(event.instance), now_ms, out)

    return Controller, "_on_instance_unreachable", wrong


def _late_plan_not_checked() -> _Patch:
    return Scheduler, "_placeable", lambda self, task: True


def _late_plan_overfills() -> _Patch:
    return Scheduler, "_drop_overflow", lambda self, slots, changes: None


def _cancel_forgotten_while_stopping() -> _Patch:
    right = Executor._begin_stopping

    def wrong(self: Executor, job: Any, ending: Ending, reason: str, now_ms: int) -> None:
        if job.state is not JobState.STOPPING:
            right(self, job, ending, reason, now_ms)

    return Executor, "_begin_stopping", wrong


def _lost_instance_uses_up_a_retry() -> _Patch:
    right = Executor.copy_lost

    def wrong(self: Executor, task: Task, reason: str, now_ms: int, out: Out) -> None:
        task.job.failures += 1
        right(self, task, reason, now_ms, out)

    return Executor, "copy_lost", wrong


def _other_copies_survive_a_failure() -> _Patch:
    return Executor, "_order_stop", lambda self, task, out: None


def _billed_until_the_message_came() -> _Patch:
    right = Provisioner.gone

    def wrong(self: Provisioner, instance: Any, at_ms: int, *args: Any, **named: Any) -> None:
        right(self, instance, self._state.now_ms, *args, **named)

    return Provisioner, "gone", wrong


def _refused_type_asked_for_again() -> _Patch:
    return Offer, "at", lambda self, now_ms: self.catalog


def _bill_follows_the_price_list() -> _Patch:
    right = Offer.change

    def wrong(self: Offer, types: Any, unfit: str) -> None:
        right(self, types, unfit)
        accounts = self._state.ledger.open
        for name, account in list(accounts.items()):
            kind = self.catalog.get(account.type)
            if kind is not None:  # what is on spot is on no price list
                accounts[name] = replace(account, hourly_micros=kind.hourly_micros)

    return Offer, "change", wrong


def _tasks_stay_on_what_is_taken_back() -> _Patch:
    right = Executor.evict

    def wrong(self: Executor, job: Job, reason: str, now_ms: int, out: Out) -> None:
        if job.state is JobState.RUNNING:
            right(self, job, reason, now_ms, out)

    return Executor, "evict", wrong


def _risk_is_billed() -> _Patch:
    right = Provisioner.launch

    def wrong(self: Provisioner, kind: Any, now_ms: int, out: Out) -> Any:
        instance = right(self, kind, now_ms, out)
        accounts = self._state.ledger.open
        accounts[instance.id] = replace(accounts[instance.id], hourly_micros=kind.hourly_micros)
        return instance

    return Provisioner, "launch", wrong


def _put_on_spot_unasked() -> _Patch:
    return Demand, "on", lambda self, family: self._by_family.get(on_demand(family), self.default)


def _spot_instance_forgotten_twice() -> _Patch:
    right = Interruptions.gone

    def wrong(self: Interruptions, instance: Any, now_ms: int) -> None:
        right(self, instance, now_ms)
        right(self, instance, now_ms)

    return Interruptions, "gone", wrong


MUTATIONS: Mapping[str, Callable[[], _Patch]] = {
    make.__name__.lstrip("_").replace("_", "-"): make
    for make in (
        _epoch_not_bumped,
        _stale_epoch_accepted,
        _started_before_siblings_stopped,
        _terminated_with_a_task_on_it,
        _launched_twice,
        _job_lost_on_refusal,
        _billed_from_launch,
        _room_freed_before_proof_of_stop,
        _duplicates_not_recognised,
        _late_word_of_an_earlier_attempt_accepted,
        _drained_instance_forgotten,
        _drained_instance_not_retained,
        _overflow_ignored_after_a_failed_move,
        _silence_taken_for_death,
        _late_plan_not_checked,
        _late_plan_overfills,
        _cancel_forgotten_while_stopping,
        _lost_instance_uses_up_a_retry,
        _other_copies_survive_a_failure,
        _billed_until_the_message_came,
        _refused_type_asked_for_again,
        _bill_follows_the_price_list,
        _tasks_stay_on_what_is_taken_back,
        _risk_is_billed,
        _put_on_spot_unasked,
        _spot_instance_forgotten_twice,
    )
}

FOUND_BY: Mapping[str, int] = {
    "epoch-not-bumped": 0,
    "stale-epoch-accepted": 0,
    "started-before-siblings-stopped": 4,
    "terminated-with-a-task-on-it": 0,
    "launched-twice": 0,
    "job-lost-on-refusal": 10,
    "billed-from-launch": 0,
    "room-freed-before-proof-of-stop": 0,
    "duplicates-not-recognised": 0,
    "late-word-of-an-earlier-attempt-accepted": 55,
    "drained-instance-forgotten": 0,
    "drained-instance-not-retained": 10,
    "overflow-ignored-after-a-failed-move": 40,
    "silence-taken-for-death": 10,
    "late-plan-not-checked": 11,
    "late-plan-overfills": 124,
    "cancel-forgotten-while-stopping": 70,
    "lost-instance-uses-up-a-retry": 7,
    "other-copies-survive-a-failure": 1,
    "billed-until-the-message-came": 10,
    "refused-type-asked-for-again": 10,
    "bill-follows-the-price-list": 1,
    "tasks-stay-on-what-is-taken-back": 1,
    "risk-is-billed": 0,
    "put-on-spot-unasked": 6,
    "spot-instance-forgotten-twice": 0,
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The controller with one bug in it."""
    owner, attribute, wrong = MUTATIONS[name]()
    with patch.object(owner, attribute, wrong):
        yield
