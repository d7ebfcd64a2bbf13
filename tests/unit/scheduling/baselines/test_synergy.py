"""Synergy: best fit where it pays, else the cheapest type."""

from __future__ import annotations

from eva.model.colocation import Entry, ThroughputTable
from eva.model.ids import Workload
from eva.scheduling.baselines.synergy import Synergy
from tests.support.small_cluster import LARGE, MEDIUM, SMALL, Rounds, shape, snapshot, spec, task

A, B = spec("a"), spec("b")
WIDE = spec("wide", cpus=12)


def bad_pair(throughput: float) -> ThroughputTable:
    a, b = Workload("a"), Workload("b")
    return ThroughputTable().record([Entry(a, (b,), throughput), Entry(b, (a,), throughput)])


def test_the_place_with_least_to_spare_is_taken() -> None:
    seen = snapshot(
        task("x", WIDE, on="i1"),
        task("y", A, on="i2"),
        task("z", A, on="i2"),
        task("n", B),
        present={"i1": LARGE, "i2": LARGE},
    )
    assert shape(Synergy().plan(seen)) == [("i1", "l", ("n", "x")), ("i2", "l", ("y", "z"))]


def test_no_room_means_the_cheapest_type() -> None:
    seen = snapshot(task("x", A, on="i1"), task("n", A), present={"i1": SMALL})
    assert shape(Synergy().plan(seen)) == [("i1", "s", ("x",)), (None, "s", ("n",))]


def test_a_task_stays_away_where_it_would_lower_the_worth() -> None:
    seen = snapshot(
        task("x", A, on="i1"), task("n", B), present={"i1": MEDIUM}, table=bad_pair(0.4)
    )
    assert shape(Synergy().plan(seen)) == [("i1", "m", ("x",)), (None, "s", ("n",))]


def test_a_task_that_adds_exactly_nothing_stays_away() -> None:
    x, n = spec("a", cpus=6), spec("b", cpus=2)
    a, b = Workload("a"), Workload("b")
    even = ThroughputTable().record([Entry(a, (b,), 0.5), Entry(b, (a,), 0.9)])  # 90 + 90
    seen = snapshot(task("x", x, on="i1"), task("n", n), present={"i1": MEDIUM}, table=even)
    assert shape(Synergy().plan(seen)) == [("i1", "m", ("x",)), (None, "s", ("n",))]


def test_a_task_stays_away_where_the_whole_would_not_be_worth_its_instance() -> None:
    seen = snapshot(
        task("x", A, on="i1"), task("n", B), present={"i1": MEDIUM}, table=bad_pair(0.8)
    )
    assert shape(Synergy().plan(seen)) == [("i1", "m", ("x",)), (None, "s", ("n",))]


def test_worth_its_instance_exactly_is_worth_it() -> None:
    seen = snapshot(
        task("x", A, on="i1"), task("n", B), present={"i1": MEDIUM}, table=bad_pair(0.9)
    )
    assert shape(Synergy().plan(seen)) == [("i1", "m", ("n", "x"))]


def test_the_largest_is_placed_first_and_the_smaller_joins_it() -> None:
    seen = snapshot(task("a", A), task("w", WIDE))
    assert shape(Synergy().plan(seen)) == [(None, "l", ("a", "w"))]


def test_an_empty_instance_is_used_again_where_the_task_is_worth_it() -> None:
    seen = snapshot(task("n", A), present={"i1": SMALL, "i2": LARGE})
    assert shape(Synergy().plan(seen)) == [("i1", "s", ("n",))]


def test_nobody_moves_over_many_rounds() -> None:
    rounds = Rounds(Synergy())
    rounds.round(task("w", WIDE))
    rounds.round(task("a", A))
    assert (rounds.launched, rounds.hourly_micros) == (1, 400)
    rounds.round(ending=("w",))
    rounds.round(task("b", B))
    assert rounds.moves == 0
    assert rounds.launched == 2  # a and b together are not worth the large instance
