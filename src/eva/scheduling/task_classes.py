"""Tasks that packing cannot tell apart, counted instead of listed.

Two tasks are of one class when they have equal specs (workload, demand, speed, delays) and their
jobs are worth the same. Algorithm 1 then works on classes and counts, and its cost does not grow
with the number of tasks.

Classes come in the order in which remaining ties are broken everywhere: higher reservation price
first, then larger demand, then workload name, then first task id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eva.model.ids import JobId, TaskId
from eva.model.jobs import TaskSpec
from eva.model.plan import Unplaceable
from eva.model.resources import NOTHING
from eva.model.snapshot import TaskView
from eva.scheduling.reservation_price import PriceBook, ReservationPrice, why_unplaceable


@dataclass(frozen=True, slots=True, eq=False)
class TaskClass:
    """`others_micros` is what the siblings of each task are worth, 0 for single-task jobs."""

    spec: TaskSpec
    price: ReservationPrice
    others_micros: int
    tasks: tuple[TaskId, ...]  # sorted

    def __len__(self) -> int:
        return len(self.tasks)


def job_worth(tasks: Iterable[TaskView], book: PriceBook) -> dict[JobId, int]:
    """The summed reservation price of each job's tasks: what a slowed job loses from."""
    worth: defaultdict[JobId, int] = defaultdict(int)
    for task in tasks:
        price = book.price(task.spec)
        if price is not None:
            worth[task.job] += price.hourly_micros
    return worth


def classify(
    tasks: Iterable[TaskView],
    book: PriceBook,
    worth: dict[JobId, int],
) -> tuple[tuple[TaskClass, ...], tuple[Unplaceable, ...]]:
    """Group tasks into classes; those that fit no instance type are named with the reason.

    `worth` is taken over *all* live tasks, also those that are not being placed now.
    """
    groups: defaultdict[tuple[int, int], list[TaskId]] = defaultdict(list)
    specs: dict[int, TaskSpec] = {}
    for task in tasks:  # by identity first: equal specs are mostly the same object
        key = id(task.spec)
        specs[key] = task.spec
        groups[key, worth.get(task.job, 0)].append(task.id)
    merged: defaultdict[tuple[TaskSpec, int], list[TaskId]] = defaultdict(list)
    for (key, job_micros), ids in groups.items():
        merged[specs[key], job_micros].extend(ids)
    classes: list[TaskClass] = []
    unplaceable: list[Unplaceable] = []
    for (spec, job_micros), ids in merged.items():
        price = book.price(spec)
        if price is None:
            reason = why_unplaceable(book.catalog, spec)
            unplaceable.extend(Unplaceable(task, reason) for task in ids)
        else:
            others = max(0, job_micros - price.hourly_micros)
            classes.append(TaskClass(spec, price, others, tuple(sorted(ids))))
    return tuple(sorted(classes, key=_tie_order)), tuple(sorted(unplaceable, key=lambda u: u.task))


def _tie_order(group: TaskClass) -> tuple[int, tuple[int, ...], str, TaskId]:
    demand = group.spec.demand.default or NOTHING
    return (
        -group.price.hourly_micros,
        tuple(-amount for amount in demand),
        group.spec.workload,
        group.tasks[0],
    )


def class_of_task(classes: Sequence[TaskClass]) -> dict[TaskId, int]:
    """Which class each task belongs to, by position."""
    return {task: index for index, group in enumerate(classes) for task in group.tasks}
