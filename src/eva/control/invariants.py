"""Promises that the controller makes to itself, checked from its books alone.

- No task is in two places: it has a copy exactly in the states that have one, on one instance.
- The copies on an instance never exceed its capacity, and neither do the tasks bound for it.
- No accepted job is forgotten: it is live with all of its tasks, or it has a record.
- Every launched instance is accounted for until the cloud says that it is gone.
- The bill is the sum of uptime times price, and the price is that of the launch, without the risk.
- Nothing is on spot, or bound for it, that does not allow that.
- What the cloud refused is not asked for again before its time is over.
- What is taken back, or silent, is being left by everything on it.
- Nothing that is waited for has nobody left to bring it about.

`check_everything` costs as much as the cluster is large. `check_touched` looks only at what an
event and its commands speak of, which is cheap enough to be always on.
"""

from __future__ import annotations

from collections.abc import Iterable

from eva.control.commands import Command, LaunchInstance
from eva.control.events import Event
from eva.control.lifecycle import (
    BEING_STOPPED,
    TERMINAL,
    InstanceState,
    JobState,
    TaskState,
)
from eva.control.state import Instance, Job, State, Task
from eva.model.errors import InvariantError
from eva.model.ids import InstanceId, JobId, TaskId
from eva.model.resources import Resources, total
from eva.model.units import cost_micros

_NO_TASK, _NO_INSTANCE = TaskId(""), InstanceId("")  # never in an index


def check_everything(state: State) -> None:
    """All promises, over everything that is live."""
    for job in state.jobs.values():
        check_job(state, job)
    for instance in state.instances.values():
        check_instance(state, instance)
    _check_indices(state)
    _check_spot(state)
    _check_bill(state)


def check_touched(state: State, event: Event, commands: Iterable[Command]) -> None:
    """The promises about the tasks and instances that an event and its commands speak of."""
    jobs: dict[JobId, Job] = {}
    instances: dict[InstanceId, Instance] = {}
    for thing in (event, *commands):
        if isinstance(thing, LaunchInstance):
            check_launch(state, thing)
        task = state.tasks.get(getattr(thing, "task", _NO_TASK))
        if task is not None:
            jobs[task.job.id] = task.job
            for place in (task.instance, task.home, task.origin):
                if place is not None:
                    instances[place.id] = place
        instance = state.instances.get(getattr(thing, "instance", _NO_INSTANCE))
        if instance is not None:
            instances[instance.id] = instance
    for job in jobs.values():
        check_job(state, job)
    for instance in instances.values():
        check_instance(state, instance)


def check_launch(state: State, command: LaunchInstance) -> None:
    until_ms = state.set_aside.get(command.type.name, state.now_ms)
    _demand_that(
        until_ms <= state.now_ms,
        f"{command.instance} is launched as a {command.type.name}, set aside until {until_ms} ms",
    )


def check_instance(state: State, instance: Instance) -> None:
    """Books and capacity of one instance."""
    name = f"instance {instance.id} ({instance.type.name}, {instance.state.value})"
    gone = instance.state is InstanceState.GONE
    _demand_that(
        (state.instances.get(instance.id) is None) == gone,
        f"{name} is {'still' if gone else 'not'} in the index",
    )
    _demand_that(
        (instance.id not in state.ledger.open) == gone,
        f"{name} has {'an' if gone else 'no'} open account",
    )
    account = state.ledger.open.get(instance.id)
    _demand_that(
        account is None or account.hourly_micros == instance.type.billed_micros,
        f"{name} is billed at another price than it was launched at",
    )
    for what, tasks, booked in (
        ("copies", instance.copies, instance.used),
        ("bound tasks", instance.bound, instance.reserved),
    ):
        _check_load(name, what, instance, list(tasks.values()), booked)
    for task in instance.copies.values():
        _demand_that(task.instance is instance, f"{name} lists {task.id}, which is elsewhere")
    for task in instance.bound.values():
        _demand_that(task.home is instance, f"{name} awaits {task.id}, bound elsewhere")
    if instance.type.spot:
        here = instance.copies | instance.bound
        unwilling = [task.id for task in here.values() if not task.spec.demand.spot]
        _demand_that(not unwilling, f"{name} may be taken back, which {unwilling} do not allow")
    if instance.doomed:
        staying = [t.id for t in instance.copies.values() if t.state not in BEING_STOPPED]
        _demand_that(not staying, f"{name} is taken back or silent, and {staying} stay on it")
    _demand_that(
        not instance.bound or instance.usable,
        f"{name} is on its way out and {list(instance.bound)} are bound for it",
    )
    _demand_that(
        bool(instance.copies) or instance.state is not InstanceState.DRAINING,
        f"{name} is empty and nobody terminates it",
    )
    _demand_that(
        not instance.copies or instance.doomed or instance.state is not InstanceState.TERMINATING,
        f"{name} is being terminated with {list(instance.copies)} on it",
    )


def check_job(state: State, job: Job) -> None:
    """Books and life of one job and its tasks."""
    _demand_that(
        job.state not in TERMINAL and state.jobs.get(job.id) is job,
        f"job {job.id} ({job.state.value}) is not in the index of live jobs",
    )
    states = [task.state for task in job.tasks]
    being_stopped = sum(state in BEING_STOPPED for state in states)
    _demand_that(
        being_stopped == job.being_stopped and states.count(TaskState.DONE) == job.done,
        f"job {job.id} miscounts its tasks {[s.value for s in states]}",
    )
    _demand_that(
        all(state in _TASKS_OF[job.state] for state in states),
        f"job {job.id} is {job.state.value} with tasks {[s.value for s in states]}",
    )
    _demand_that(
        bool(being_stopped) or job.state not in (JobState.STOPPING, JobState.MOVING),
        f"job {job.id} waits for a task to stop, and none is being stopped",
    )
    _demand_that(
        (job.ending is not None) == (job.state is JobState.STOPPING),
        f"job {job.id} ({job.state.value}) ends by {job.ending}",
    )
    for task in job.tasks:
        _check_task(state, task)
    _demand_that(
        not being_stopped or TaskState.STARTING not in states or job.state is JobState.STOPPING,
        f"job {job.id} starts a task while a sibling is being stopped",
    )


def _check_task(state: State, task: Task) -> None:
    _demand_that(state.tasks.get(task.id) is task, f"task {task.id} is not in the index")
    place, home = task.instance, task.home
    _demand_that(
        (place is not None) == task.has_copy, f"task {task.id} ({task.state.value}) is misplaced"
    )
    _demand_that(place is None or task.id in place.copies, f"task {task.id} is not on its instance")
    _demand_that(home is None or task.id in home.bound, f"task {task.id} is not awaited at home")
    _demand_that(
        place is None or task.epoch > 0, f"task {task.id} has a copy without ever being started"
    )
    if task.state in (TaskState.WAITING, TaskState.STOPPING, TaskState.DONE):
        _demand_that(home is None, f"task {task.id} ({task.state.value}) still has a home")
    elif task.state is not TaskState.CHECKPOINTING:
        _demand_that(home is not None, f"task {task.id} ({task.state.value}) has no home")
    moving = place is not None and home is not None and place is not home
    _demand_that(
        not moving or task.job.state in (JobState.PREPARING, JobState.MOVING),
        f"task {task.id} moves while its job is {task.job.state.value}",
    )
    _demand_that(
        task.state is not TaskState.ASSIGNED or home is None or _has_to_wait(task, home),
        f"task {task.id} could start on its home and was not started",
    )


def _has_to_wait(task: Task, home: Instance) -> bool:
    return (
        bool(task.job.being_stopped)
        or not home.ready
        or not home.used.plus(task.demand(home)).fits_in(home.type.capacity)
    )


def _check_load(
    name: str, what: str, instance: Instance, tasks: list[Task], booked: Resources
) -> None:
    load = total(task.demand(instance) for task in tasks)
    _demand_that(load == booked, f"{name} books {booked} for {what} that need {load}")
    _demand_that(
        load.fits_in(instance.type.capacity),
        f"{name} has {instance.type.capacity} and {what} that need {load}",
    )


def _check_indices(state: State) -> None:
    tasks = sum(len(job.tasks) for job in state.jobs.values())
    _demand_that(
        len(state.tasks) == tasks, f"{len(state.tasks)} tasks are indexed for {tasks} of live jobs"
    )
    both = state.jobs.keys() & state.records.keys()
    _demand_that(not both, f"jobs {sorted(both)} are live and have ended")
    _demand_that(
        state.ledger.open.keys() == state.instances.keys(),
        f"open accounts {list(state.ledger.open)} for instances {list(state.instances)}",
    )
    launched = len(state.instances) + len(state.ledger.closed)
    _demand_that(
        launched == state.launches, f"{state.launches} instances launched, {launched} known"
    )
    willing = [job.id for job in state.jobs.values() if job.spec.spot]
    _demand_that(list(state.on_spot) == willing, f"{list(state.on_spot)} allow spot, not {willing}")
    for task in state.tasks.values():
        _demand_that(
            task.instance is None or state.instances.get(task.instance.id) is task.instance,
            f"task {task.id} has a copy on an instance that is gone",
        )


def _check_spot(state: State) -> None:
    """What is counted as up on spot is up."""
    for family, seen in state.spot.items():
        up = sum(
            instance.type.family == family and instance.ready_ms is not None
            for instance in state.instances.values()
        )
        _demand_that(
            seen.running == up, f"{seen.running} of family {family} are counted as up, {up} are"
        )


def _check_bill(state: State) -> None:
    owed = 0
    for account in state.ledger:
        if account.acquired_ms is not None:
            end_ms = state.now_ms if account.ended_ms is None else account.ended_ms
            _demand_that(
                account.launched_ms <= account.acquired_ms <= end_ms,
                f"account of {account.instance} runs from {account.acquired_ms} to {end_ms} ms",
            )
            owed += cost_micros(account.hourly_micros, end_ms - account.acquired_ms)
    billed = state.ledger.bill_micros(state.now_ms)
    _demand_that(billed == owed, f"the bill is {billed} micro-dollars, uptime x price is {owed}")


def _demand_that(promise: bool, broken: str) -> None:  # noqa: FBT001  # reads as a sentence
    if not promise:
        raise InvariantError(f"{broken}: a bug in the controller")


_STARTABLE = frozenset(
    {TaskState.WAITING, TaskState.ASSIGNED, TaskState.STARTING, TaskState.RUNNING, TaskState.DONE}
)
_RUNNING = frozenset({TaskState.RUNNING, TaskState.DONE})
_QUEUED = frozenset({TaskState.WAITING, TaskState.DONE})
_TASKS_OF = {
    JobState.QUEUED: _QUEUED,
    JobState.STARTING: _STARTABLE,
    JobState.RUNNING: _RUNNING,
    JobState.PREPARING: _RUNNING,
    JobState.MOVING: frozenset(
        {
            TaskState.WAITING,
            TaskState.ASSIGNED,
            TaskState.RUNNING,
            TaskState.CHECKPOINTING,
            TaskState.DONE,
        }
    ),
    JobState.STOPPING: frozenset(
        {TaskState.WAITING, TaskState.CHECKPOINTING, TaskState.STOPPING, TaskState.DONE}
    ),
}
