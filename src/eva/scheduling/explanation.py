"""Why an instance of a plan is worth its price: what each of its tasks contributes.

Only arithmetic over what the plan was made from, so that every place that explains (`eva solve`,
`eva explain`) says the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eva.model.catalog import InstanceType
from eva.model.colocation import without
from eva.model.ids import TaskId, Workload
from eva.model.plan import PlannedInstance
from eva.model.snapshot import ClusterSnapshot
from eva.scheduling.reservation_price import PriceBook, price_book
from eva.scheduling.task_classes import TaskClass, class_of_task, classify, job_worth
from eva.scheduling.valuation import Valuation, crowd_of


@dataclass(frozen=True, slots=True)
class Share:
    """Equal tasks of one instance, and what they contribute to its worth, per hour."""

    workload: Workload
    tasks: tuple[TaskId, ...]
    alone_on: InstanceType  # the reservation-price type
    alone_micros: int  # reservation price of one task
    throughput: float  # expected, beside the others on this instance
    worth_micros: int  # of one task, at that throughput


@dataclass(frozen=True, slots=True)
class Reason:
    """One instance, its worth taken apart."""

    planned: PlannedInstance
    shares: tuple[Share, ...]

    @property
    def apart_micros(self) -> int:
        """What the same tasks would cost on an instance of their own each."""
        return sum(share.alone_micros * len(share.tasks) for share in self.shares)


class Explainer:
    """Reasons under one snapshot and one valuation."""

    def __init__(self, snapshot: ClusterSnapshot, valuation: Valuation) -> None:
        self._table = snapshot.table
        self._valuation = valuation
        self._book: PriceBook = price_book(snapshot.catalog)
        worth = job_worth(snapshot.tasks, self._book)
        self.classes, self.unplaceable = classify(snapshot.tasks, self._book, worth)
        self._class_of = class_of_task(self.classes)

    @property
    def no_packing_micros(self) -> int:
        """Every placeable task on an instance of its own."""
        return sum(group.price.hourly_micros * len(group) for group in self.classes)

    def reasons(self, instances: Iterable[PlannedInstance]) -> tuple[Reason, ...]:
        return tuple(self._reason(planned) for planned in instances)

    def _reason(self, planned: PlannedInstance) -> Reason:
        by_class: dict[int, list[TaskId]] = {}
        for task in planned.tasks:
            by_class.setdefault(self._class_of[task], []).append(task)
        members = [(self.classes[index], len(tasks)) for index, tasks in sorted(by_class.items())]
        crowd = crowd_of(members)
        shares = []
        for (group, _), (_, tasks) in zip(members, sorted(by_class.items()), strict=True):
            beside = without(crowd, group.spec.workload)
            throughput = self._table.throughput(group.spec.workload, beside)
            shares.append(self._share(planned, group, tuple(tasks), throughput))
        return Reason(planned, tuple(shares))

    def _share(
        self,
        planned: PlannedInstance,
        group: TaskClass,
        tasks: tuple[TaskId, ...],
        throughput: float,
    ) -> Share:
        worth = self._valuation.task_micros(group, planned.type.family, throughput)
        return Share(
            group.spec.workload,
            tasks,
            group.price.type,
            group.price.hourly_micros,
            throughput,
            round(worth),
        )
