"""One round of an incremental scheduler: the cluster as it stands, and what is added to it.

All baselines leave running tasks where they are (Stratus and Owl move a few), give waiting tasks a
place, and let go of instances on which nothing is left. That part is here, once; a baseline is
then only the rule by which it picks a place.

Where a task is, is taken from the task. A waiting task, or one whose instance is gone, needs a
place; a task that may not be moved and whose instance is on its way out is left out of the plan,
since any place named for it would be a move.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eva.model.catalog import InstanceType
from eva.model.colocation import ThroughputTable
from eva.model.errors import InvariantError
from eva.model.ids import InstanceId, TaskId
from eva.model.jobs import TaskSpec
from eva.model.plan import ClusterPlan, Decision, PlannedInstance, Unplaceable
from eva.model.resources import Resources
from eva.model.snapshot import ClusterSnapshot, TaskView
from eva.scheduling.reservation_price import ReservationPrice, price_book, why_unplaceable
from eva.scheduling.task_classes import TaskClass, job_worth
from eva.scheduling.valuation import QUANTA_PER_MICRO, Valuation, quanta

VALUATION = Valuation()


def demand_on(spec: TaskSpec, family: str) -> Resources | None:
    """What a task needs on a family; None where it cannot run, or would stand still."""
    return None if spec.throughput.on(family) == 0 else spec.demand.on(family)


class Place:
    """An instance of the coming plan: a present one, or one to launch (`instance` is None)."""

    __slots__ = ("free", "instance", "tasks", "type")

    def __init__(self, kind: InstanceType, instance: InstanceId | None) -> None:
        self.type = kind
        self.instance = instance
        self.tasks: list[TaskView] = []
        self.free = kind.capacity

    def has_room_for(self, task: TaskView) -> bool:
        return self.free_after(task) is not None

    def free_after(self, task: TaskView) -> Resources | None:
        """What stays free once `task` is here too; None where it has no room."""
        needed = demand_on(task.spec, self.type.family)
        return self.free.minus(needed) if needed is not None and needed.fits_in(self.free) else None

    def add(self, task: TaskView) -> None:
        self.tasks.append(task)
        self.free = self.free.minus(self._demand(task))

    def remove(self, task: TaskView) -> None:
        self.tasks.remove(task)
        self.free = self.free.plus(self._demand(task))

    def clear(self) -> None:
        self.tasks.clear()
        self.free = self.type.capacity

    def _demand(self, task: TaskView) -> Resources:
        needed = demand_on(task.spec, self.type.family)
        # A task that cannot run here, yet does, leaves no room for another.
        return self.free if needed is None else needed


class Board:
    """The places of this round, and the tasks that still need one."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self.snapshot = snapshot
        self.table: ThroughputTable = snapshot.table
        self._book = price_book(snapshot.catalog)
        self._worth = job_worth(snapshot.tasks, self._book)
        self._classes: dict[TaskId, TaskClass] = {}
        self.places = [Place(view.type, view.id) for view in snapshot.instances]
        self.waiting: list[TaskView] = []
        self.unplaceable: list[Unplaceable] = []
        self._seat(snapshot.tasks)

    def _seat(self, tasks: Iterable[TaskView]) -> None:
        by_instance = {place.instance: place for place in self.places}
        for task in sorted(tasks, key=lambda task: task.id):
            place = None if task.instance is None else by_instance.get(task.instance)
            if place is not None:
                place.add(task)
            elif task.instance is not None and not task.movable:
                continue
            else:
                self._wait(task)

    def _wait(self, task: TaskView) -> None:
        if self.is_priced(task):
            self.waiting.append(task)
        else:
            reason = why_unplaceable(self.snapshot.catalog, task.spec)
            self.unplaceable.append(Unplaceable(task.id, reason))

    def is_priced(self, task: TaskView) -> bool:
        """Whether any type holds the task; true of every waiting one."""
        return self._book.price(task.spec) is not None

    def price(self, task: TaskView) -> ReservationPrice:
        price = self._book.price(task.spec)
        if price is None:
            raise InvariantError(
                f"task {task.id} fits no type of catalog {self.snapshot.catalog.name!r} and has "
                f"no reservation price; ask is_priced first"
            )
        return price

    def launch(self, kind: InstanceType, tasks: Iterable[TaskView]) -> Place:
        place = Place(kind, None)
        for task in tasks:
            place.add(task)
        self.places.append(place)
        return place

    def launch_alone(self, task: TaskView) -> Place:
        """A new instance of the cheapest type that holds the task."""
        return self.launch(self.price(task).type, (task,))

    def worth_quanta(self, tasks: Sequence[TaskView], kind: InstanceType) -> int:
        """What these tasks are worth together on `kind`, as far as the table knows.

        A task that the catalog does not price there counts for nothing.
        """
        classes = [self._class_of(task) for task in tasks if self.is_priced(task)]
        members = [(group, 1) for group in classes if kind.family in group.price.by_family]
        return VALUATION.value(kind.family, members, self.table)

    def pair_quanta(
        self, pair: tuple[TaskView, TaskView], throughputs: tuple[float, float], kind: InstanceType
    ) -> int:
        """What two tasks are worth together on `kind` at throughputs known otherwise."""
        return quanta(
            sum(
                VALUATION.task_micros(self._class_of(task), kind.family, throughput)
                for task, throughput in zip(pair, throughputs, strict=True)
            )
        )

    def _class_of(self, task: TaskView) -> TaskClass:
        known = self._classes.get(task.id)
        if known is None:
            price = self.price(task)
            others = max(0, self._worth[task.job] - price.hourly_micros)
            known = self._classes[task.id] = TaskClass(task.spec, price, others, (task.id,))
        return known

    def relative_cost(self, place: Place) -> float:
        """What the instance costs over what its tasks would cost apart; 0 where that is unknown."""
        priced = (task for task in place.tasks if self.is_priced(task))
        apart_micros = sum(self.price(task).hourly_micros for task in priced)
        return place.type.hourly_micros / apart_micros if apart_micros else 0.0

    def plan(self, decision: Decision) -> ClusterPlan:
        """Every place that has a task; the others are thereby let go."""
        return ClusterPlan(
            tuple(self._planned(place) for place in self.places if place.tasks),
            tuple(self.unplaceable),
            decision,
        )

    def _planned(self, place: Place) -> PlannedInstance:
        worth = self.worth_quanta(place.tasks, place.type) // QUANTA_PER_MICRO
        return PlannedInstance(
            place.type, tuple(task.id for task in place.tasks), place.instance, worth
        )
