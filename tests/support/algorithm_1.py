"""Algorithm 1 of the paper, transcribed line by line: one task at a time, no classes, no arrays.

Slow and plain on purpose. The kernel in `eva.scheduling.packing` must give the same configuration.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eva.model.catalog import Catalog, InstanceType
from eva.model.colocation import ThroughputTable, neighbours
from eva.model.resources import total
from eva.model.snapshot import TaskView
from eva.scheduling.packing import alignment
from eva.scheduling.reservation_price import price_book
from eva.scheduling.valuation import Valuation, quanta

Configuration = list[tuple[InstanceType, list[TaskView]]]


def full_reconfiguration(
    tasks: Sequence[TaskView], catalog: Catalog, table: ThroughputTable, valuation: Valuation
) -> Configuration:
    worth = _Worth(tasks, catalog, table, valuation)
    unassigned = sorted(
        (task for task in tasks if price_book(catalog).price(task.spec)), key=worth.tie_order
    )
    configuration: Configuration = []
    for kind in catalog:  # in descending cost
        while True:
            chosen: list[TaskView] = []
            while True:
                options = [
                    task
                    for task in unassigned
                    if task not in chosen and _fits([*chosen, task], kind)
                ]
                if not options:
                    break
                best = max(
                    options,
                    key=lambda task: (
                        worth.of([*chosen, task], kind),
                        _alignment(task, chosen, kind),
                    ),
                )
                if chosen and worth.of([*chosen, best], kind) <= worth.of(chosen, kind):
                    break
                chosen.append(best)
            if not chosen or worth.of(chosen, kind) < quanta(kind.hourly_micros):
                break
            configuration.append((kind, chosen))
            unassigned = [task for task in unassigned if task not in chosen]
    return configuration


class _Worth:
    """RP, TNRP or multi-task TNRP of a list of tasks, straight from the definitions."""

    def __init__(
        self,
        tasks: Sequence[TaskView],
        catalog: Catalog,
        table: ThroughputTable,
        valuation: Valuation,
    ) -> None:
        self._tasks, self._table, self._valuation = tasks, table, valuation
        self._book = price_book(catalog)

    def of(self, chosen: Sequence[TaskView], kind: InstanceType) -> int:
        return quanta(sum(self._one(task, chosen, kind) for task in chosen))

    def tie_order(self, task: TaskView) -> tuple[object, ...]:
        """`max` takes the first of equals: dearest, then largest demand, then name, then id."""
        demand = task.spec.demand.default
        assert demand is not None
        sizes = tuple(-amount for amount in demand)
        return (-self._price(task), sizes, task.spec.workload, task.id)

    def _one(self, task: TaskView, chosen: Sequence[TaskView], kind: InstanceType) -> float:
        price = self._book.price(task.spec)
        assert price is not None
        if not self._valuation.interference:
            return price.on(kind.family)
        others = neighbours(other.spec.workload for other in chosen if other is not task)
        throughput = self._table.throughput(task.spec.workload, others)
        siblings = [
            other
            for other in self._tasks
            if self._valuation.multi_task and other.job == task.job and other is not task
        ]
        at_stake = price.on(kind.family) + sum(self._price(other) for other in siblings)
        return price.on(kind.family) - (1 - throughput) * at_stake

    def _price(self, task: TaskView) -> int:
        price = self._book.price(task.spec)
        return 0 if price is None else price.hourly_micros


def _alignment(task: TaskView, chosen: Sequence[TaskView], kind: InstanceType) -> int:
    """Among equals, the task shaped most like the room that is left."""
    present = [d for d in (other.spec.demand.on(kind.family) for other in chosen) if d is not None]
    demand = task.spec.demand.on(kind.family)
    assert demand is not None
    columns = [np.array([amount], dtype=np.int64) for amount in demand]
    return int(alignment(columns, kind.capacity.minus(total(present)))[0])


def _fits(chosen: Sequence[TaskView], kind: InstanceType) -> bool:
    demands = [task.spec.demand.on(kind.family) for task in chosen]
    known = [demand for demand in demands if demand is not None]
    return len(known) == len(demands) and total(known).fits_in(kind.capacity)
