"""Spot offerings: their price with the risk, and who goes there when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eva.model.catalog import Catalog, InstanceDelays, InstanceType
from eva.model.ids import Workload
from eva.model.jobs import TaskSpec
from eva.model.plan import ClusterPlan
from eva.model.resources import Demand, Resources
from eva.model.units import MS_PER_HOUR
from eva.scheduling.eva import EvaPolicy
from eva.scheduling.reservation_price import price_book
from eva.scheduling.spot import Rate, SpotRisk, at_risk, with_spot
from tests.support.small_cluster import shape, snapshot, task

MINUTE_MS = 60_000
DELAYS = InstanceDelays(MINUTE_MS, MINUTE_MS, 3 * MINUTE_MS)
GPU = InstanceType(
    "g5.xlarge", "g5", Resources(1, 4_000, 16_384), 1_000_000, DELAYS, spot_hourly_micros=400_000
)
CPU = InstanceType("c7i.large", "c7i", Resources(0, 4_000, 16_384), 90_000, DELAYS)
CATALOG = Catalog("two", (GPU, CPU))
RISK = SpotRisk(Rate(1, 20 * MS_PER_HOUR), 10 * MINUTE_MS)
STEADY = TaskSpec(Workload("w"), Demand.of(1, 4, 16))
WILLING = replace(STEADY, demand=replace(STEADY.demand, spot=True))


def offered(rate: Rate | None = None) -> Catalog:
    return with_spot(CATALOG, RISK, {} if rate is None else {"g5:spot": rate})


def on_spot(catalog: Catalog) -> InstanceType:
    kind = catalog.get("g5.xlarge:spot")
    assert kind is not None
    return kind


def test_an_hour_on_spot_costs_its_price_and_its_share_of_an_interruption() -> None:
    kind = on_spot(offered())
    assert kind.family == "g5:spot"
    assert kind.billed_micros == 400_000
    # A twentieth of a quarter of an hour of what the machine is worth.
    assert kind.risk_micros == 1_000_000 // 20 // 4
    assert (kind.capacity, kind.delays) == (GPU.capacity, GPU.delays)


def test_the_risk_goes_with_the_rate() -> None:
    risks = [on_spot(offered(Rate(n, MS_PER_HOUR))).risk_micros for n in (0, 1, 2)]
    assert risks == [0, 250_000, 500_000]


@pytest.mark.parametrize("price", [None, 0])
def test_what_has_no_price_on_spot_is_not_offered_there(price: int | None) -> None:
    catalog = Catalog("one", (replace(GPU, spot_hourly_micros=price),))
    assert [kind.name for kind in with_spot(catalog, RISK, {})] == ["g5.xlarge"]


def test_families_on_spot_are_known_also_where_nothing_of_them_is_offered() -> None:
    """Their instances may be up, rented at a price that is too old by now."""
    assert offered().families == ("c7i", "c7i:spot", "g5", "g5:spot")


def test_another_risk_is_no_other_bill() -> None:
    kind = at_risk(on_spot(offered()), 77)
    assert (kind.risk_micros, kind.billed_micros, kind.hourly_micros) == (77, 400_000, 400_077)


# Belief and experience


def test_before_anything_is_seen_it_is_believed() -> None:
    assert RISK.rate(Rate(0, 0)) == RISK.believed
    assert RISK.rate(Rate(0, 0)).per_hour == pytest.approx(1 / 20)


def test_experience_is_added_to_belief() -> None:
    assert RISK.rate(Rate(3, 20 * MS_PER_HOUR)).per_hour == pytest.approx(4 / 40)
    assert RISK.rate(Rate(0, 60 * MS_PER_HOUR)).per_hour == pytest.approx(1 / 80)


def test_quiet_hours_lower_the_estimate_in_few_steps_and_never_too_far() -> None:
    rates = [RISK.rate(Rate(0, hours * MS_PER_HOUR)) for hours in range(2_000)]
    assert len(set(rates)) == 13  # 1, 2, 3, 4, 6, 8, 12, ... 96 times twenty hours
    for hours, rate in enumerate(rates):
        whole_ms = (hours + 20) * MS_PER_HOUR
        assert rate.in_ms <= whole_ms < 2 * rate.in_ms


# Who goes there


def plan(catalog: Catalog, *tasks: object, **present: InstanceType) -> ClusterPlan:
    return EvaPolicy().plan(snapshot(*tasks, catalog=catalog, present=present))  # type: ignore[arg-type]  # task views


def test_a_task_that_allows_spot_goes_there_while_it_is_cheaper() -> None:
    made = plan(offered(), task("a", WILLING), task("b", STEADY))
    assert shape(made) == [(None, "g5.xlarge", ("b",)), (None, "g5.xlarge:spot", ("a",))]
    price = price_book(offered()).price(WILLING)
    assert price is not None
    assert price.hourly_micros == 412_500
    assert (made.billed_micros, made.risk_micros) == (1_400_000, 12_500)


def test_where_the_risk_eats_up_the_saving_it_stays_on_demand() -> None:
    made = plan(offered(Rate(3, MS_PER_HOUR)), task("a", WILLING))
    assert shape(made) == [(None, "g5.xlarge", ("a",))]


def test_it_comes_back_when_the_risk_has_risen() -> None:
    """What runs is seen at the risk of now: then it is not worth its price any more."""
    here = on_spot(offered())
    stays = plan(offered(), task("a", WILLING, on="i-1"), **{"i-1": here})
    assert shape(stays) == [("i-1", "g5.xlarge:spot", ("a",))]
    dangerous = offered(Rate(3, MS_PER_HOUR))
    moves = plan(dangerous, task("a", WILLING, on="i-1"), **{"i-1": on_spot(dangerous)})
    assert shape(moves) == [(None, "g5.xlarge", ("a",))]


def test_it_shares_what_is_there_on_demand_with_what_does_not_allow_spot() -> None:
    half = replace(STEADY, demand=Demand.of(0, 2, 8))
    willing = replace(half, demand=replace(half.demand, spot=True))
    made = plan(offered(), task("a", half, on="i-1"), task("b", willing), **{"i-1": CPU})
    assert shape(made) == [("i-1", "c7i.large", ("a", "b"))]


def test_another_belief_weighs_one_interruption() -> None:
    assert SpotRisk.believing(0.5).believed == Rate(1, 2 * MS_PER_HOUR)
    assert SpotRisk.believing(0.05) == SpotRisk()
    never = SpotRisk.believing(0)
    assert never.micros(GPU, never.rate(Rate(0, 0))) == 0
    assert never.rate(Rate(1, 20 * MS_PER_HOUR)).per_hour == pytest.approx(1 / 40)
