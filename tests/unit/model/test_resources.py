from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eva.model.resources import NOTHING, Demand, Resources, total

amounts = st.builds(
    Resources, st.integers(0, 8), st.integers(0, 200_000), st.integers(0, 2_000_000)
)


@given(amounts, amounts)
def test_what_fits_leaves_room_that_is_not_negative(needed: Resources, room: Resources) -> None:
    assert needed.fits_in(room) == (min(room.minus(needed)) >= 0)


@given(amounts, amounts)
def test_plus_and_minus_undo_each_other(first: Resources, second: Resources) -> None:
    assert first.plus(second).minus(second) == first


@given(st.lists(amounts))
def test_the_total_is_the_sum_one_by_one(parts: list[Resources]) -> None:
    summed = NOTHING
    for part in parts:
        summed = summed.plus(part)
    assert total(parts) == summed


def test_amounts_as_text() -> None:
    assert str(Resources(1, 2_500, 1_536)) == "1 GPU, 2.5 CPU, 1.5 GB"


def test_a_demand_by_family() -> None:
    slower = Resources(0, 12_000, 40_960)
    faster = Resources(0, 6_000, 40_960)
    demand = Demand(slower, (("r7i", faster), ("c7i", faster)))
    assert demand.on("c7i") == faster
    assert demand.on("p3") == slower


def test_equal_demands_are_equal_in_any_order_of_families() -> None:
    one, two = ("a", Resources(1, 1, 1)), ("b", Resources(2, 2, 2))
    assert Demand(None, (one, two)) == Demand(None, (two, one))
    assert hash(Demand(None, (one, two))) == hash(Demand(None, (two, one)))


def test_a_demand_for_named_families_only() -> None:
    demand = Demand(None, (("p3", Resources(1, 1, 1)),))
    assert demand.on("c7i") is None
    with pytest.raises(ValueError, match="at least one family"):
        Demand(None)
