"""No-Packing: one task, one instance of its cheapest type, for life."""

from __future__ import annotations

from eva.scheduling.baselines.no_packing import NoPacking
from tests.support.small_cluster import LARGE, MEDIUM, SMALL, Rounds, shape, snapshot, spec, task

A, WIDE = spec("a", cpus=2), spec("wide", cpus=12)


def test_every_waiting_task_gets_its_cheapest_type_alone() -> None:
    plan = NoPacking().plan(snapshot(task("t1", A), task("t2", A), task("t3", WIDE)))
    assert shape(plan) == [(None, "l", ("t3",)), (None, "s", ("t1",)), (None, "s", ("t2",))]


def test_a_task_stays_on_its_instance_whatever_that_is() -> None:
    plan = NoPacking().plan(snapshot(task("t1", A, on="i1"), present={"i1": LARGE}))
    assert shape(plan) == [("i1", "l", ("t1",))]


def test_what_another_policy_packed_is_left_alone() -> None:
    tasks = (task("t1", A, on="i1"), task("t2", A, on="i1", movable=False))
    plan = NoPacking().plan(snapshot(*tasks, present={"i1": MEDIUM}))
    assert shape(plan) == [("i1", "m", ("t1", "t2"))]


def test_an_emptied_instance_is_let_go_and_not_used_again() -> None:
    plan = NoPacking().plan(snapshot(task("t1", A), present={"i1": SMALL}))
    assert shape(plan) == [(None, "s", ("t1",))]


def test_as_many_instances_as_tasks_over_many_rounds() -> None:
    rounds = Rounds(NoPacking())
    for number in range(6):
        rounds.round(task(f"t{number}", A), ending=(f"t{number - 1}",) if number > 2 else ())
    assert (rounds.launched, rounds.moves, rounds.hourly_micros) == (6, 0, 300)
