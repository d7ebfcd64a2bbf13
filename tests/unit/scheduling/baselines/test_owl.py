"""Owl: pairs that get along by the profile, best value for money first."""

from __future__ import annotations

from eva.model.colocation import Entry, ThroughputTable
from eva.model.ids import Workload
from eva.model.oracle import Oracle
from eva.scheduling.baselines.owl import Owl
from tests.support.small_cluster import LARGE, MEDIUM, SMALL, Rounds, shape, snapshot, spec, task

A, B, C = spec("a"), spec("b"), spec("c")


def profile(default: float = 1.0, **pairs: float) -> Oracle:
    """`ab=0.8`: a runs at 0.8 beside b."""
    return Oracle(profile=lambda one, other: pairs.get(f"{one}{other}", default))


def test_a_good_pair_shares_the_cheapest_type_that_holds_both() -> None:
    seen = snapshot(task("t1", A), task("t2", B), oracle=profile())
    assert shape(Owl().plan(seen)) == [(None, "m", ("t1", "t2"))]


def test_one_slow_side_forbids_the_pair() -> None:
    seen = snapshot(task("t1", A), task("t2", B), oracle=profile(ba=0.84))
    assert shape(Owl().plan(seen)) == [(None, "s", ("t1",)), (None, "s", ("t2",))]


def test_the_threshold_is_a_parameter_and_is_itself_allowed() -> None:
    seen = snapshot(task("t1", A), task("t2", B), oracle=profile(0.9))
    assert len(Owl(least_throughput=0.9).plan(seen).instances) == 1
    assert len(Owl(least_throughput=0.91).plan(seen).instances) == 2


def test_a_pair_must_be_worth_its_instance() -> None:
    seen = snapshot(task("t1", A), task("t2", B), oracle=profile(0.85))
    assert len(Owl(least_throughput=0.5).plan(seen).instances) == 2  # 170 on an instance of 180


def test_the_best_pair_is_taken_first() -> None:
    seen = snapshot(task("t1", A), task("t2", B), task("t3", C), oracle=profile(0.92, bc=1, cb=1))
    assert shape(Owl().plan(seen)) == [(None, "m", ("t2", "t3")), (None, "s", ("t1",))]


def test_equal_pairs_go_by_id() -> None:
    seen = snapshot(task("t3", A), task("t2", A), task("t1", A), oracle=profile())
    assert shape(Owl().plan(seen)) == [(None, "m", ("t1", "t2")), (None, "s", ("t3",))]


def test_never_three_even_where_there_is_room() -> None:
    seen = snapshot(
        task("t1", A, on="i1"),
        task("t2", A, on="i1"),
        task("t3", A),
        present={"i1": LARGE},
        oracle=profile(),
    )
    assert shape(Owl().plan(seen)) == [("i1", "l", ("t1", "t2")), (None, "s", ("t3",))]


def test_a_newcomer_joins_a_single_on_the_right_type_without_a_move() -> None:
    seen = snapshot(task("t1", A, on="i1"), task("t2", B), present={"i1": MEDIUM}, oracle=profile())
    assert shape(Owl().plan(seen)) == [("i1", "m", ("t1", "t2"))]


def test_a_single_moves_to_pair_up() -> None:
    seen = snapshot(task("t1", A, on="i1"), task("t2", B), present={"i1": SMALL}, oracle=profile())
    assert shape(Owl().plan(seen)) == [(None, "m", ("t1", "t2"))]


def test_an_immovable_task_is_neither_moved_nor_joined() -> None:
    seen = snapshot(
        task("t1", A, on="i1", movable=False),
        task("t2", B),
        present={"i1": MEDIUM},
        oracle=profile(),
    )
    assert shape(Owl().plan(seen)) == [("i1", "m", ("t1",)), (None, "s", ("t2",))]


def test_what_a_partner_left_behind_moves_to_its_own_type() -> None:
    seen = snapshot(task("t1", A, on="i1"), present={"i1": MEDIUM}, oracle=profile())
    assert shape(Owl().plan(seen)) == [(None, "s", ("t1",))]


def test_the_profile_counts_and_the_learned_table_does_not() -> None:
    a, b = Workload("a"), Workload("b")
    slow = ThroughputTable().record([Entry(a, (b,), 0.1), Entry(b, (a,), 0.1)])
    seen = snapshot(task("t1", A), task("t2", B), table=slow, oracle=profile())
    assert len(Owl().plan(seen).instances) == 1


def test_pairs_stay_together_until_one_ends() -> None:
    rounds = Rounds(Owl(), oracle=profile())
    rounds.round(task("t1", A), task("t2", A))
    rounds.round(task("t3", A))
    rounds.round()
    assert (rounds.launched, rounds.moves) == (2, 0)
    rounds.round(ending=("t2",))
    assert rounds.moves == 1  # t3 joins t1, whose instance is of the right type
    assert rounds.hourly_micros == 180
