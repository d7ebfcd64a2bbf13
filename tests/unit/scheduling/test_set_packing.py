"""Packing by sets: everything placed once, nothing worth less than its instance."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings

from eva.model.catalog import Catalog
from eva.model.colocation import Entry, ThroughputTable
from eva.model.ids import JobId, TaskId, Workload
from eva.model.jobs import TaskSpec
from eva.model.resources import Demand
from eva.model.snapshot import ClusterSnapshot, TaskView
from eva.scheduling.packing import Pattern, full_stock, pack
from eva.scheduling.set_packing import MOST_CLASSES, pack_by_sets
from eva.scheduling.situation import assess
from eva.scheduling.valuation import QUANTA_PER_MICRO, Valuation
from tests.support import paper_example as example
from tests.support.strategies import catalogs, tables, task_lists


@settings(max_examples=80, deadline=None)
@given(catalog=catalogs(), tasks=task_lists(multi_task=True), table=tables())
def test_the_stock_is_covered_by_sets_that_pay(
    catalog: Catalog, tasks: tuple[TaskView, ...], table: ThroughputTable
) -> None:
    situation = assess(ClusterSnapshot(0, catalog, tasks, table=table), Valuation())
    stock = full_stock(situation.classes)
    placed: Counter[int] = Counter()
    for pattern in pack_by_sets(situation.packer, catalog, stock):
        assert situation.packer.holds(pattern.type, pattern.members)
        assert pattern.value >= pattern.type.hourly_micros * QUANTA_PER_MICRO
        for index, count in pattern.members:
            placed[index] += count * pattern.copies
    assert [placed[index] for index in range(len(stock))] == list(stock)


def test_a_partner_is_left_to_whom_it_serves_best() -> None:
    """Algorithm 1 would pack all three for little; by sets, the undisturbed pair wins."""
    big, small = example.DEMANDS["t1"], Demand.of(1, 4, 10)
    specs = {
        "loud": TaskSpec(Workload("loud"), big),
        "quiet": TaskSpec(Workload("quiet"), big),
        "guest": TaskSpec(Workload("guest"), small),
    }
    tasks = [TaskView(TaskId(n), JobId(n), spec) for n, spec in specs.items()]
    table = ThroughputTable(1.0).record(
        [Entry(Workload(a), (Workload("loud"),), 0.6) for a in ("quiet", "guest")]
    )
    situation = assess(ClusterSnapshot(0, example.CATALOG, tuple(tasks), table=table), Valuation())
    stock = full_stock(situation.classes)

    def saved(patterns: list[Pattern]) -> int:
        return sum(p.value - p.type.hourly_micros * QUANTA_PER_MICRO for p in patterns)

    greedy = saved(pack(situation.packer, example.CATALOG, stock))
    by_sets = saved(pack_by_sets(situation.packer, example.CATALOG, stock))
    assert by_sets >= greedy
    assert by_sets > 0


def test_too_many_classes_fall_back_to_algorithm_1() -> None:
    tasks = tuple(
        TaskView(
            TaskId(f"{i:03}"), JobId(f"{i:03}"), TaskSpec(Workload(f"w{i}"), Demand.of(0, 1, 1))
        )
        for i in range(MOST_CLASSES + 1)
    )
    situation = assess(ClusterSnapshot(0, example.CATALOG, tasks), Valuation())
    stock = full_stock(situation.classes)
    assert pack_by_sets(situation.packer, example.CATALOG, stock) == pack(
        situation.packer, example.CATALOG, stock
    )
    assert np.count_nonzero(stock) == MOST_CLASSES + 1
