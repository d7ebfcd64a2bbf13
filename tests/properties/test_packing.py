"""The grouped kernel of Algorithm 1 against its plain transcription, and what it must guarantee."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eva.model.catalog import Catalog
from eva.model.colocation import ThroughputTable
from eva.model.snapshot import ClusterSnapshot, TaskView
from eva.scheduling.expansion import expand
from eva.scheduling.packing import full_stock, pack
from eva.scheduling.situation import assess
from eva.scheduling.valuation import QUANTA_PER_MICRO, Valuation
from tests.support import algorithm_1
from tests.support.strategies import catalogs, tables, task_lists

Shape = Counter[tuple[str, tuple[object, ...]]]

VALUATIONS = {
    "RP": (Valuation(interference=False), False),
    "TNRP": (Valuation(), False),
    "multi-task": (Valuation(), True),
}


def _kernel(
    tasks: tuple[TaskView, ...], catalog: Catalog, table: ThroughputTable, valuation: Valuation
) -> Shape:
    situation = assess(ClusterSnapshot(0, catalog, tasks, table=table), valuation)
    patterns = pack(situation.packer, catalog, full_stock(situation.classes))
    by_id = {task.id: task for task in tasks}
    placing = [group.tasks for group in situation.classes]
    return Counter(
        (planned.type.name, _multiset([by_id[name] for name in planned.tasks]))
        for planned in expand(patterns, situation.classes, placing, ())
    )


def _multiset(tasks: list[TaskView]) -> tuple[object, ...]:
    return tuple(sorted((str(task.spec), len(task.job)) for task in tasks))


@pytest.mark.parametrize("mode", VALUATIONS)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_kernel_and_transcription_agree(mode: str, data: st.DataObject) -> None:
    valuation, multi_task = VALUATIONS[mode]
    tasks = data.draw(task_lists(multi_task=multi_task))
    catalog, table = data.draw(catalogs()), data.draw(tables())
    plain = algorithm_1.full_reconfiguration(tasks, catalog, table, valuation)
    expected = Counter((kind.name, _multiset(chosen)) for kind, chosen in plain)
    assert _kernel(tasks, catalog, table, valuation) == expected


@settings(max_examples=100, deadline=None)
@given(catalog=catalogs(), tasks=task_lists(multi_task=True), table=tables())
def test_what_algorithm_1_guarantees(
    catalog: Catalog, tasks: tuple[TaskView, ...], table: ThroughputTable
) -> None:
    situation = assess(ClusterSnapshot(0, catalog, tasks, table=table), Valuation())
    stock = full_stock(situation.classes)
    patterns = pack(situation.packer, catalog, stock)
    placed: Counter[int] = Counter()
    for pattern in patterns:
        assert situation.packer.holds(pattern.type, pattern.members)
        assert pattern.value >= pattern.type.hourly_micros * QUANTA_PER_MICRO
        assert pattern.value == situation.packer.value(pattern.type.family, pattern.members)
        for index, count in pattern.members:
            placed[index] += count * pattern.copies
    assert [placed[index] for index in range(len(stock))] == list(stock)


@settings(max_examples=60, deadline=None)
@given(
    catalog=catalogs(),
    tasks=task_lists(multi_task=True),
    table=tables(),
    order=st.randoms(use_true_random=False),
)
def test_order_of_input_is_irrelevant(
    catalog: Catalog, tasks: tuple[TaskView, ...], table: ThroughputTable, order: Random
) -> None:
    shuffled = list(tasks)
    order.shuffle(shuffled)
    assert _kernel(tasks, catalog, table, Valuation()) == _kernel(
        tuple(shuffled), catalog, table, Valuation()
    )
