"""What all baselines have in common: where tasks are, what is kept, what is let go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eva.model.errors import InvariantError
from eva.model.jobs import StandaloneThroughput
from eva.model.plan import Decision
from eva.scheduling.baselines.board import Board, Place
from tests.support.small_cluster import LARGE, MEDIUM, SMALL, kind, snapshot, spec, task

A = spec("a")
GIANT = spec("giant", cpus=1000)


def test_tasks_sit_where_they_say_and_the_rest_waits_in_order_of_id() -> None:
    board = Board(
        snapshot(task("w2", A), task("r", A, on="i1"), task("w1", A), present={"i1": SMALL})
    )
    assert [one.id for one in board.waiting] == ["w1", "w2"]
    assert [[one.id for one in place.tasks] for place in board.places] == [["r"]]


def test_an_instance_without_tasks_is_not_in_the_plan() -> None:
    plan = Board(snapshot(present={"i1": SMALL})).plan(Decision("x"))
    assert plan.instances == ()


def test_a_task_whose_instance_is_gone_waits_if_it_may_move() -> None:
    board = Board(snapshot(task("lost", A, on="gone"), task("stuck", A, on="gone", movable=False)))
    assert [one.id for one in board.waiting] == ["lost"]
    assert board.plan(Decision("x")).instances == ()


def test_a_task_that_fits_nothing_is_named_with_what_it_needs() -> None:
    plan = Board(snapshot(task("giant", GIANT))).plan(Decision("x"))
    assert [one.task for one in plan.unplaceable] == ["giant"]
    assert "1000 CPU" in plan.unplaceable[0].reason


def test_a_running_task_that_the_catalog_no_longer_holds_keeps_its_place_and_is_worth_nothing() -> (
    None
):
    huge = kind("huge", 0, 2000, 2000, 9_000)
    board = Board(snapshot(task("giant", GIANT, on="i1"), present={"i1": huge}))
    plan = board.plan(Decision("x"))
    assert [(one.instance, one.value_micros) for one in plan.instances] == [("i1", 0)]
    assert board.relative_cost(board.places[0]) == 0.0
    with pytest.raises(InvariantError, match="giant"):
        board.price(board.places[0].tasks[0])


def test_room_is_what_the_tasks_leave() -> None:
    place = Place(MEDIUM, None)
    first, second, third = (task(name, A) for name in "abc")
    place.add(first)
    assert place.has_room_for(second)
    place.add(second)
    assert not place.has_room_for(third)
    place.remove(first)
    assert place.has_room_for(third)
    place.clear()
    assert place.free == MEDIUM.capacity


def test_relative_cost_is_the_price_over_what_the_tasks_cost_apart() -> None:
    board = Board(snapshot(task("a", A, on="i1"), task("b", A, on="i1"), present={"i1": LARGE}))
    assert board.relative_cost(board.places[0]) == 400 / (100 + 100)


def test_the_value_of_a_planned_instance_is_its_worth_at_expected_throughput() -> None:
    tasks = (task("a", A, on="i1"), task("b", A, on="i1"))
    plan = Board(snapshot(*tasks, present={"i1": MEDIUM})).plan(Decision("x"))
    assert plan.instances[0].value_micros == 190  # 2 * 0.95 * 100


def test_siblings_elsewhere_count_in_the_value() -> None:
    pair = (task("a", A, on="i1", job="j"), task("b", A, on="i1"), task("c", A, on="i2", job="j"))
    plan = Board(snapshot(*pair, present={"i1": MEDIUM, "i2": SMALL})).plan(Decision("x"))
    assert plan.instances[0].value_micros == 185  # a also slows c: 100 - 0.05 * 200, and 95


def test_a_family_on_which_a_task_stands_still_has_no_room_for_it() -> None:
    still = replace(A, throughput=StandaloneThroughput(1.0, (("any", 0.0),)))
    assert not Place(MEDIUM, None).has_room_for(task("x", still))
