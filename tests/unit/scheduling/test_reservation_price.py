"""Reservation price: cheapest type that holds the task, or cheapest per iteration."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eva.model.catalog import Catalog, InstanceType
from eva.model.ids import Workload
from eva.model.jobs import StandaloneThroughput, TaskSpec
from eva.model.resources import Demand, Resources
from eva.scheduling.reservation_price import (
    ReservationPrice,
    fits_alone,
    price_book,
    why_unplaceable,
)
from tests.support.strategies import catalogs, specs


def kind(name: str, family: str, cpus: int, hourly_micros: int, gpus: int = 0) -> InstanceType:
    return InstanceType(name, family, Resources(gpus, cpus * 1000, 64 * 1024), hourly_micros)


SLOW = kind("slow.8", "slow", 8, 100)
FAST = kind("fast.8", "fast", 8, 150)
FAST_SMALL = kind("fast.4", "fast", 4, 75)
GPU = kind("gpu.8", "gpu", 8, 900, gpus=1)
CATALOG = Catalog("two-speeds", (SLOW, FAST, FAST_SMALL, GPU))


def spec(demand: Demand, default: float | None = None, **per_family: float) -> TaskSpec:
    return TaskSpec(Workload("w"), demand, StandaloneThroughput(default, tuple(per_family.items())))


def price(what: TaskSpec, catalog: Catalog = CATALOG) -> ReservationPrice:
    found = price_book(catalog).price(what)
    assert found is not None
    return found


def test_the_cheapest_type_that_holds_the_task() -> None:
    assert price(spec(Demand.of(0, 4, 8))).type == FAST_SMALL
    assert price(spec(Demand.of(0, 6, 8))).type == SLOW
    assert price(spec(Demand.of(1, 1, 8))).type == GPU


def test_equal_prices_go_by_name() -> None:
    catalog = Catalog("twins", (kind("b", "x", 8, 100), kind("a", "x", 8, 100)))
    assert price(spec(Demand.of(0, 4, 8)), catalog).type.name == "a"


def test_the_demand_of_the_family_counts() -> None:
    demand = Demand(Resources(0, 6000, 1024), (("fast", Resources(0, 3000, 1024)),))
    assert price(spec(demand)).type == FAST_SMALL


def test_without_stated_speeds_the_worth_is_the_same_everywhere() -> None:
    assert price(spec(Demand.of(0, 6, 8))).by_family == {"slow": 100, "fast": 100, "gpu": 100}


def test_a_dearer_type_wins_where_it_is_cheaper_per_iteration() -> None:
    found = price(spec(Demand.of(0, 6, 8), 1.0, fast=2.0))
    assert found.type == FAST  # 150 / 2 < 100 / 1
    assert found.hourly_micros == 150
    assert found.by_family == {"slow": 75, "fast": 150, "gpu": 75}


def test_speed_alone_does_not_win() -> None:
    found = price(spec(Demand.of(0, 6, 8), 1.0, fast=1.4))
    assert found.type == SLOW  # 150 / 1.4 > 100 / 1
    assert found.by_family == {"slow": 100, "fast": 140, "gpu": 100}


def test_equal_cost_per_iteration_is_a_tie_for_any_speed() -> None:
    for speed in (0.1, 0.3, 1 / 3, 7.7):
        found = price(spec(Demand.of(0, 6, 8), speed, fast=1.5 * speed))
        assert found.type.name in {"fast.8", "slow.8"}
        assert abs(found.on("slow") - 100) <= 1


def test_where_it_cannot_run_it_has_no_worth_and_no_price() -> None:
    only_fast = spec(Demand(None, (("fast", Resources(0, 2000, 1024)),)))
    assert price(only_fast).by_family == {"fast": 75}
    standstill = spec(Demand.of(0, 2, 8), 1.0, fast=0.0)
    assert price(standstill).type == SLOW
    assert price(standstill).on("fast") == 0


def test_nothing_holds_it() -> None:
    giant = spec(Demand.of(2, 4, 8))
    assert price_book(CATALOG).price(giant) is None
    reason = why_unplaceable(CATALOG, giant)
    assert "2 GPU, 4 CPU, 8 GB" in reason
    assert "two-speeds" in reason
    assert "1 GPU, 8 CPU, 64 GB" in reason


def test_each_distinct_spec_is_priced_once() -> None:
    book = price_book(CATALOG)
    assert book is price_book(CATALOG)
    assert book.price(spec(Demand.of(0, 4, 8))) is book.price(spec(Demand.of(0, 4, 8)))


def test_the_paper_s_task_that_needs_fewer_fast_cores() -> None:
    """GCN: 12 vCPUs on p3 but 6 on c7i and r7i; 40 GB puts it on r7i.2xlarge."""
    types = (
        InstanceType("p3.2xlarge", "p3", Resources(1, 8_000, 61 * 1024), 3_060_000),
        InstanceType("c7i.2xlarge", "c7i", Resources(0, 8_000, 16 * 1024), 357_000),
        InstanceType("c7i.8xlarge", "c7i", Resources(0, 32_000, 64 * 1024), 1_428_000),
        InstanceType("r7i.2xlarge", "r7i", Resources(0, 8_000, 64 * 1024), 529_200),
    )
    little, much = Resources(0, 6_000, 40 * 1024), Resources(0, 12_000, 40 * 1024)
    gcn = spec(Demand(much, (("c7i", little), ("r7i", little))))
    assert price(gcn, Catalog("part of the paper's", types)).hourly_micros == 529_200


@given(catalog=catalogs(), what=specs())
def test_it_is_the_minimum_over_the_types_that_fit(catalog: Catalog, what: TaskSpec) -> None:
    found = price_book(catalog).price(what)
    prices = [one.hourly_micros for one in catalog if fits_alone(what, one)]
    assert (None if found is None else found.hourly_micros) == min(prices, default=None)


@given(catalog=catalogs(), what=specs(), cheaper=st.integers(1, 1_000_000))
def test_another_type_never_raises_it(catalog: Catalog, what: TaskSpec, cheaper: int) -> None:
    before = price_book(catalog).price(what)
    more = catalog.with_types(
        (*catalog, InstanceType("new", "g", Resources(8, 64_000, 65_536), cheaper))
    )
    after = price_book(more).price(what)
    if before is not None:
        assert after is not None
        assert after.hourly_micros <= before.hourly_micros
