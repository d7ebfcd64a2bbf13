"""The paper's worked example, to the dollar."""

from __future__ import annotations

import pytest

from eva.model.colocation import Entry, ThroughputTable
from eva.model.ids import JobId, TaskId, Workload
from eva.model.jobs import TaskSpec
from eva.model.resources import Demand
from eva.model.snapshot import ClusterSnapshot, TaskView
from eva.model.units import usd_to_micros
from eva.scheduling.eva import EvaPolicy, Reconfiguration
from eva.scheduling.policies import policy
from eva.scheduling.reservation_price import price_book
from eva.scheduling.situation import assess
from eva.scheduling.valuation import QUANTA_PER_MICRO, Valuation
from tests.support import paper_example as example

T1, T2 = Workload("t1"), Workload("t2")


@pytest.mark.parametrize(("name", "usd"), [("t1", "12"), ("t2", "3"), ("t3", "0.8"), ("t4", "0.4")])
def test_reservation_prices(name: str, usd: str) -> None:
    price = price_book(example.CATALOG).price(example.task(name).spec)
    assert price is not None
    assert price.hourly_micros == usd_to_micros(usd)


def test_full_reconfiguration_costs_12_80_where_separate_instances_cost_16_20() -> None:
    plan = EvaPolicy(valuation=Valuation(interference=False)).plan(example.snapshot())
    placed = {planned.type.name: sorted(planned.tasks) for planned in plan.instances}
    assert placed == {"it1": ["t1", "t2", "t4"], "it3": ["t3"]}
    assert plan.hourly_micros == usd_to_micros("12.8")
    separate = sum(
        price.hourly_micros
        for task in example.TASKS
        if (price := price_book(example.CATALOG).price(task.spec))
    )
    assert separate == usd_to_micros("16.2")


def _pair_worth(first: float, second: float) -> float:
    """TNRP of t1 and t2 together, in dollars."""
    table = ThroughputTable().record([Entry(T1, (T2,), first), Entry(T2, (T1,), second)])
    pair = ClusterSnapshot(0, example.CATALOG, example.TASKS[:2], table=table)
    situation = assess(pair, Valuation())
    members = situation.members([TaskId("t1"), TaskId("t2")])
    return situation.packer.value("any", members) / QUANTA_PER_MICRO / 1e6


def test_mild_interference_leaves_the_pair_worth_its_instance() -> None:
    assert _pair_worth(0.8, 0.9) == pytest.approx(12.3)


def test_severe_interference_does_not() -> None:
    assert _pair_worth(0.7, 0.8) == pytest.approx(10.8)
    table = ThroughputTable().record([Entry(T1, (T2,), 0.7), Entry(T2, (T1,), 0.8)])
    plan = policy("eva").plan(ClusterSnapshot(0, example.CATALOG, example.TASKS[:2], table=table))
    assert sorted(planned.type.name for planned in plan.instances) == ["it1", "it2"]


def test_a_straggler_is_charged_with_what_its_siblings_lose() -> None:
    """Four data-parallel tasks: slowing one to 0.9 loses a tenth of all four."""
    spec = TaskSpec(Workload("parallel"), Demand.of(1, 4, 10))
    guest = TaskSpec(Workload("guest"), Demand.of(1, 4, 10))
    job = tuple(TaskView(TaskId(f"j.{i}"), JobId("j"), spec) for i in range(4))
    other = TaskView(TaskId("g"), JobId("g"), guest)
    table = ThroughputTable().record(
        [
            Entry(Workload("parallel"), (Workload("guest"),), 0.9),
            Entry(Workload("guest"), (Workload("parallel"),), 1.0),
        ]
    )
    snapshot = ClusterSnapshot(0, example.CATALOG, (*job, other), table=table)
    beside = [TaskId("j.3"), TaskId("g")]

    multi = assess(snapshot, Valuation())
    together = multi.packer.value("any", multi.members(beside))
    assert together / QUANTA_PER_MICRO / 1e6 == pytest.approx(3 - 0.1 * 4 * 3 + 3)

    single = assess(snapshot, Valuation(multi_task=False))
    apart = single.packer.value("any", single.members(beside))
    assert apart / QUANTA_PER_MICRO / 1e6 == pytest.approx(0.9 * 3 + 3)


def test_every_ablation_places_every_task() -> None:
    for only in Reconfiguration:
        plan = EvaPolicy(considered=(only,)).plan(example.snapshot())
        assert sorted(t for planned in plan.instances for t in planned.tasks) == sorted(
            example.DEMANDS
        )
