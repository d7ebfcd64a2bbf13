"""Net hourly value: against every partition of a few tasks, against its bound, and in doubt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import numpy as np
import pytest

from eva.model.catalog import Catalog
from eva.model.colocation import Entry, ThroughputTable
from eva.model.ids import Workload
from eva.model.snapshot import TaskView
from eva.scheduling.exact.net_value import NetValuePolicy, greatest_net_value
from eva.scheduling.exact.small_sets import list_small_sets
from eva.scheduling.packing import Packer, full_stock
from eva.scheduling.situation import Situation
from eva.scheduling.valuation import QUANTA_PER_MICRO, Valuation
from tests.support.small_cluster import CATALOG, shape, snapshot, spec, task
from tests.support.ten_workloads import PAPER, draw_tasks, measured, situation

TRUST = 1.0


def _partitions(tasks: Sequence[int]) -> Iterator[list[list[int]]]:
    if not tasks:
        yield []
        return
    first, rest = tasks[0], tasks[1:]
    for smaller in _partitions(rest):
        yield [[first], *smaller]
        for position, group in enumerate(smaller):
            if len(group) < 4:
                yield [*smaller[:position], [first, *group], *smaller[position + 1 :]]


def _best_net(packer: Packer, catalog: Catalog, group: Sequence[int]) -> int | None:
    """The most that a group of classes is worth above its instance, in quanta."""
    members = tuple((index, group.count(index)) for index in sorted(set(group)))
    return max(
        (
            packer.value(kind.family, members) - kind.hourly_micros * QUANTA_PER_MICRO
            for kind in catalog
            if packer.holds(kind, members)
        ),
        default=None,
    )


def _optimum(known: Situation, catalog: Catalog) -> int:
    tasks = [index for index, group in enumerate(known.classes) for _ in group.tasks]
    best = 0
    for partition in _partitions(tasks):
        nets = [_best_net(known.packer, catalog, sorted(group)) for group in partition]
        if None not in nets:
            best = max(best, sum(net for net in nets if net is not None))
    return best // QUANTA_PER_MICRO


@pytest.mark.parametrize("seed", range(8))
def test_seven_tasks_come_close_to_the_best_partition_and_stay_within_the_bound(seed: int) -> None:
    known = situation(draw_tasks(7, seed), PAPER, measured(), Valuation())
    answer = greatest_net_value(known.packer, PAPER, full_stock(known.classes), TRUST)
    optimum = _optimum(known, PAPER)
    assert answer.bound.hourly_micros >= optimum
    assert answer.net_micros >= 0.9 * optimum


@pytest.mark.parametrize("tasks", [50, 100, 200])
def test_drawn_tasks_come_within_two_percent_of_the_bound(tasks: int) -> None:
    ratios = []
    for seed in range(5):
        known = situation(draw_tasks(tasks, seed), PAPER, measured(), Valuation())
        answer = greatest_net_value(known.packer, PAPER, full_stock(known.classes), TRUST)
        assert answer.bound.complete
        ratios.append(answer.net_micros / answer.bound.hourly_micros)
    assert min(ratios) >= 0.97
    assert sum(ratios) / len(ratios) >= 0.98


def test_listed_sets_are_valued_as_everything_else_values_them() -> None:
    random = Random(5)
    tasks = draw_tasks(30, seed=5)
    names = sorted({one.spec.workload for one in tasks})
    triples = [
        Entry(a, tuple(sorted((b, c))), random.choice([0.5, 0.8, 0.99]))
        for a in names
        for b in names
        for c in names
        if random.random() < 0.2
    ]
    known = situation(tasks, PAPER, measured().record(triples), Valuation())
    stock = np.minimum(full_stock(known.classes), 2)
    listed = list_small_sets(known.packer, PAPER, stock, 3)
    assert (listed.sets <= stock).all()
    for line in range(0, len(listed.sets), 7):
        pattern = listed.pattern(line, 1)
        exact = known.packer.value(pattern.type.family, pattern.members)
        assert pattern.value // QUANTA_PER_MICRO == exact // QUANTA_PER_MICRO
        assert known.packer.holds(pattern.type, pattern.members)
    assert len(np.unique(listed.sets, axis=0)) == len(listed.sets)


def _pair(beside: Workload | None = None) -> tuple[TaskView, TaskView, ThroughputTable]:
    """Two tasks that would share an `m` at 180 instead of two `s` at 100 each."""
    table = ThroughputTable()
    if beside is not None:
        entries = [Entry(Workload("a"), (beside,), 0.95), Entry(beside, (Workload("a"),), 0.95)]
        table = table.record(entries)
    return task("one", spec("a")), task("two", spec("b")), table


def test_an_unmeasured_pair_needs_more_to_gain_than_a_measured_one() -> None:
    """At 0.95 each, two tasks are worth 190 on 180; in doubt, 180.5. At worse doubt, nothing."""
    one, two, unmeasured = _pair()
    measured_table = _pair(Workload("b"))[2]
    together = [(None, "m", ("one", "two"))]
    apart = [(None, "s", ("one",)), (None, "s", ("two",))]
    doubting = NetValuePolicy(doubt=2.5)
    assert shape(NetValuePolicy().plan(snapshot(one, two, table=unmeasured))) == together
    assert shape(doubting.plan(snapshot(one, two, table=unmeasured))) == apart
    assert shape(doubting.plan(snapshot(one, two, table=measured_table))) == together
    assert CATALOG.get("m") is not None
