"""The state without its pointers: lists of plain rows, and numbers where one thing names another.

Tasks, jobs and instances point at each other, and pickle follows pointers by recursion: through
the tasks of an instance, the other tasks of their jobs, and their instances, it would go as deep as
the cluster is large. Rows are also half the size, and quickly made.

Caches are left out. An instance that is gone but remembered as where a task ran last is a row too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic, TypeVar

from eva.control.state import Instance, Job, State, Task
from eva.model.ids import JobId

T = TypeVar("T")
Row = tuple[Any, ...]

_NOWHERE = -1

LAYOUT = 2  # rises when what is said here changes


class _Plain(Generic[T]):
    """The fields of a class that point at nothing else, as a row."""

    def __init__(self, kind: type[T], *pointers: str) -> None:
        self._kind = kind
        fields = dataclasses.fields(kind)  # type: ignore[arg-type]  # all of them are dataclasses
        self._names = tuple(field.name for field in fields if field.name not in pointers)
        self.row = attrgetter(*self._names)

    def fill(self, thing: T, row: Sequence[Any]) -> T:
        for name, value in zip(self._names, row, strict=True):
            setattr(thing, name, value)
        return thing

    def empty(self) -> T:
        return object.__new__(self._kind)


_STATE = _Plain(State, "jobs", "tasks", "instances", "unobserved", "limited", "on_spot")
_JOB = _Plain(Job, "tasks")
_TASK = _Plain(Task, "job", "instance", "home", "origin", "view")
_INSTANCE = _Plain(Instance, "copies", "bound", "view")


def flatten(state: State) -> dict[str, list[Row]]:
    """To be pickled before the state goes on: histories in it are the state's own."""
    places = _places(state)
    number = {id(place): index for index, place in enumerate(places)}
    number[id(None)] = _NOWHERE
    pointers = (
        len(state.instances),
        [number[id(place)] for place in state.unobserved.values()],
        list(state.limited),
        list(state.on_spot),
    )
    return {
        "state": [(*pointers, *_STATE.row(state))],
        "jobs": [([task.id for task in j.tasks], *_JOB.row(j)) for j in state.jobs.values()],
        "tasks": [
            (
                task.job.id,
                number[id(task.instance)],
                number[id(task.home)],
                number[id(task.origin)],
                *_TASK.row(task),
            )
            for task in state.tasks.values()
        ],
        "instances": [([*i.copies], [*i.bound], *_INSTANCE.row(i)) for i in places],
    }


def _places(state: State) -> list[Instance]:
    """All instances: first those in the index, then those that are gone and still spoken of."""
    origins = [task.origin for task in state.tasks.values() if task.origin is not None]
    every = (*state.instances.values(), *state.unobserved.values(), *origins)
    return list({id(place): place for place in every}.values())


def unflatten(rows: dict[str, list[Row]], into: State) -> None:
    """Fill a state: the parts of a controller hold the one that it made."""
    (present, unobserved, limited, on_spot, *rest) = rows["state"][0]
    _STATE.fill(into, rest)
    places = [_INSTANCE.fill(_INSTANCE.empty(), fields) for _, _, *fields in rows["instances"]]
    jobs = [_JOB.fill(_JOB.empty(), fields) for _, *fields in rows["jobs"]]
    into.instances = {place.id: place for place in places[:present]}
    into.jobs = {job.id: job for job in jobs}
    into.tasks = {task.id: task for task in _tasks(rows["tasks"], into.jobs, places)}
    for job, (names, *_) in zip(jobs, rows["jobs"], strict=True):
        job.tasks = tuple(into.tasks[name] for name in names)
    for place, (copies, bound, *_) in zip(places, rows["instances"], strict=True):
        place.view = None
        place.copies = {name: into.tasks[name] for name in copies}
        place.bound = {name: into.tasks[name] for name in bound}
    into.unobserved = {places[index].id: places[index] for index in unobserved}
    into.limited = {name: into.jobs[name] for name in limited}
    into.on_spot = {name: into.jobs[name] for name in on_spot}


def _tasks(
    rows: Iterable[Row], jobs: Mapping[JobId, Job], places: Sequence[Instance]
) -> Iterator[Task]:
    for job, instance, home, origin, *fields in rows:
        task = _TASK.fill(_TASK.empty(), fields)
        task.job, task.view = jobs[job], None
        task.instance, task.home, task.origin = (
            None if index == _NOWHERE else places[index] for index in (instance, home, origin)
        )
        yield task
