"""A snapshot, prepared once for everything that plans on it: priced, classified, indexed.

Instances are sorted here into those that a plan may take apart and those that it must leave alone
(something on them is starting or moving, or fits no type of the catalog any more).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eva.model.ids import JobId, TaskId
from eva.model.plan import PlannedInstance, Unplaceable
from eva.model.snapshot import ClusterSnapshot, InstanceView, TaskView
from eva.scheduling.packing import Members, Packer
from eva.scheduling.reservation_price import price_book
from eva.scheduling.task_classes import TaskClass, class_of_task, classify, job_worth
from eva.scheduling.valuation import QUANTA_PER_MICRO, Valuation


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """What full and partial reconfiguration, the exact policies and reports all start from."""

    snapshot: ClusterSnapshot
    packer: Packer
    tasks: dict[TaskId, TaskView]
    worth: dict[JobId, int]
    class_of: dict[TaskId, int]
    unplaceable: tuple[Unplaceable, ...]
    fixed: tuple[InstanceView, ...]
    free: tuple[InstanceView, ...]

    @property
    def classes(self) -> tuple[TaskClass, ...]:
        return self.packer.classes

    def members(self, tasks: Iterable[TaskId]) -> Members:
        """The classes of some tasks, counted; tasks without a class (unplaceable) are left out."""
        counts: dict[int, int] = {}
        for task in tasks:
            index = self.class_of.get(task)
            if index is not None:
                counts[index] = counts.get(index, 0) + 1
        return tuple(sorted(counts.items()))

    def value(self, view: InstanceView) -> int:
        """What the tasks on a present instance are worth together, in quanta."""
        members = self.members(view.tasks)
        return self.packer.value(view.type.family, members)

    def as_planned(self, view: InstanceView) -> PlannedInstance:
        """A present instance, kept as it is."""
        return PlannedInstance(view.type, view.tasks, view.id, self.value(view) // QUANTA_PER_MICRO)

    def waiting(self) -> list[TaskId]:
        """Placeable tasks that are on no instance."""
        return [
            task.id
            for task in self.snapshot.tasks
            if task.instance is None and task.id in self.class_of
        ]


def assess(snapshot: ClusterSnapshot, valuation: Valuation) -> Situation:
    """Price and classify a snapshot."""
    book = price_book(snapshot.catalog)
    worth = job_worth(snapshot.tasks, book)
    classes, unplaceable = classify(snapshot.tasks, book, worth)
    tasks = {task.id: task for task in snapshot.tasks}
    class_of = class_of_task(classes)

    def is_free(view: InstanceView) -> bool:
        return all(name in class_of and tasks[name].movable for name in view.tasks)

    return Situation(
        snapshot,
        Packer(classes, snapshot.table, valuation),
        tasks,
        worth,
        class_of,
        unplaceable,
        fixed=tuple(view for view in snapshot.instances if not is_free(view)),
        free=tuple(view for view in snapshot.instances if is_free(view)),
    )
