"""What a set is worth: the paper's own numbers, equality, and the ablations."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eva.model.catalog import Catalog, InstanceType
from eva.model.colocation import Entry, ThroughputTable, neighbours
from eva.model.ids import TaskId, Workload
from eva.model.jobs import StandaloneThroughput, TaskSpec
from eva.model.resources import Demand, Resources
from eva.scheduling.reservation_price import ReservationPrice, price_book
from eva.scheduling.task_classes import TaskClass
from eva.scheduling.valuation import QUANTA_PER_MICRO, Valuation, crowd_of, quanta

KIND = InstanceType("k", "any", Resources(8, 64_000, 65_536), 24_480_000)
A, B, C = (Workload(name) for name in "abc")


def group(workload: Workload, usd: float, others_usd: float = 0.0) -> TaskClass:
    micros = round(usd * 1_000_000)
    price = ReservationPrice(micros, KIND, {"any": micros})
    what = TaskSpec(workload, Demand.of(0, 1, 1))
    return TaskClass(what, price, round(others_usd * 1_000_000), (TaskId(workload),))


def table(*entries: tuple[Workload, tuple[Workload, ...], float]) -> ThroughputTable:
    return ThroughputTable().record(Entry(*entry) for entry in entries)


def usd(quanta_: int) -> float:
    return quanta_ / QUANTA_PER_MICRO / 1_000_000


@pytest.mark.parametrize(("first", "second", "expected"), [(0.8, 0.9, 12.3), (0.7, 0.8, 10.8)])
def test_the_worked_example_with_interference(first: float, second: float, expected: float) -> None:
    known = table((A, (B,), first), (B, (A,), second))
    members = [(group(A, 12), 1), (group(B, 3), 1)]
    assert Valuation().value("any", members, known) == quanta(expected * 1_000_000)


def test_a_task_that_slows_its_siblings_costs_what_they_lose() -> None:
    """Four equal tasks of $3; one shares its instance and runs at 0.9: 3 - 0.1 * 12 = 1.8."""
    known = table((A, (B,), 0.9), (B, (A,), 1.0))
    members = [(group(A, 3, others_usd=9), 1), (group(B, 1), 1)]
    assert usd(Valuation().value("any", members, known)) == pytest.approx(1.8 + 1)
    assert usd(Valuation(multi_task=False).value("any", members, known)) == pytest.approx(2.7 + 1)
    assert usd(Valuation(interference=False).value("any", members, known)) == 4


def test_eight_one_gpu_tasks_are_worth_exactly_the_eight_gpu_instance() -> None:
    quiet = ThroughputTable(default=1.0)
    assert Valuation().value("any", [(group(A, 3.06), 8)], quiet) == quanta(KIND.hourly_micros)


def test_alone_is_worth_the_reservation_price_whatever_is_recorded() -> None:
    assert (
        usd(Valuation().value("any", [(group(A, 3, others_usd=9), 1)], ThroughputTable(0.1))) == 3
    )


def test_a_task_does_not_slow_itself_but_its_equals_do() -> None:
    members = [(group(A, 1), 3)]
    assert usd(Valuation().value("any", members, ThroughputTable(0.5))) == 3 * 0.25
    assert crowd_of(members) == (A, A, A)


def test_nothing_is_worth_nothing() -> None:
    assert Valuation().value("any", [], ThroughputTable()) == 0


def test_worth_depends_on_the_family() -> None:
    slow = InstanceType("slow", "slow", Resources(0, 8_000, 8_192), 100)
    fast = InstanceType("fast", "fast", Resources(0, 8_000, 8_192), 150)
    speed = StandaloneThroughput(1.0, (("fast", 2.0),))
    what = TaskSpec(A, Demand.of(0, 1, 1), speed)
    price = price_book(Catalog("two", (slow, fast))).price(what)
    assert price is not None
    members = [(TaskClass(what, price, 0, (TaskId("a"),)), 1)]
    assert Valuation().value("fast", members, ThroughputTable()) == quanta(150)
    assert Valuation().value("slow", members, ThroughputTable()) == quanta(75)


paces = st.floats(0.01, 1.0)


@given(a=paces, b=paces, c=paces, prices=st.tuples(*[st.integers(1, 30_000_000)] * 3))
def test_the_order_of_a_sum_never_decides(
    a: float, b: float, c: float, prices: tuple[int, int, int]
) -> None:
    known = table(
        (A, neighbours((B, C)), a), (B, neighbours((A, C)), b), (C, neighbours((A, B)), c)
    )
    members = [(group(one, price / 1e6), 1) for one, price in zip((A, B, C), prices, strict=True)]
    worths = {Valuation().value("any", order, known) for order in permutations(members)}
    assert max(worths) - min(worths) <= 1  # a quantum at most, where a sum lies on its edge


@given(low=paces, high=paces)
def test_more_interference_is_never_worth_more(low: float, high: float) -> None:
    members = [(group(A, 3, others_usd=2), 1), (group(B, 1), 2)]
    less, more = sorted((low, high))
    assert Valuation().value("any", members, ThroughputTable(less)) <= Valuation().value(
        "any", members, ThroughputTable(more)
    )
