"""Stratus: runtime bins, equal, up and down packing, scale-out and scale-in by relative cost."""

from __future__ import annotations

import pytest

from eva.model.catalog import Catalog
from eva.model.ids import JobId
from eva.model.oracle import Oracle
from eva.model.plan import ClusterPlan
from eva.model.snapshot import TaskView
from eva.scheduling.baselines.stratus import Stratus, runtime_bin
from tests.support.small_cluster import (
    HOUR_MS,
    LARGE,
    MEDIUM,
    SMALL,
    Rounds,
    kind,
    shape,
    snapshot,
    spec,
    task,
)

A, THIN = spec("a"), spec("a", cpus=2)
MINUTE_MS = 60_000


def remaining(**minutes: float) -> Oracle:
    return Oracle({JobId(job): round(left * MINUTE_MS) for job, left in minutes.items()})


@pytest.mark.parametrize(
    ("minutes", "expected"), [(0, 0), (0.99, 0), (1, 1), (1.99, 1), (2, 2), (3.9, 2), (4, 3)]
)
def test_bins_double(minutes: float, expected: int) -> None:
    assert runtime_bin(round(minutes * MINUTE_MS)) == expected


def join(waiting_minutes: float, **running_minutes: float) -> str | None:
    """The instance that a waiting task joins, each of those present running one task."""
    running = [task(name, THIN, on=f"on-{name}") for name in running_minutes]
    seen = snapshot(
        *running,
        task("new", THIN),
        present={f"on-{name}": SMALL for name in running_minutes},
        oracle=remaining(new=waiting_minutes, **running_minutes),
    )
    plan = Stratus().plan(seen)
    return next(one.instance for one in plan.instances if "new" in one.tasks)


def test_its_own_bin_comes_first_and_in_it_the_closest() -> None:
    assert join(20, shorter=15, near=17, far=30, longer=33) == "on-near"


def test_then_the_next_longer_bin() -> None:
    assert join(20, shorter=15, longer=40, longest=100) == "on-longer"


def test_then_the_next_shorter_bin() -> None:
    assert join(20, shorter=15, shortest=2) == "on-shorter"


def test_the_longest_task_decides_the_bin_of_an_instance() -> None:
    tasks = (
        task("brief", THIN, on="mixed"),
        task("long", THIN, on="mixed"),
        task("other", THIN, on="single"),
        task("new", THIN),
    )
    oracle = remaining(brief=1, long=100, other=10, new=90)
    seen = snapshot(*tasks, present={"mixed": MEDIUM, "single": SMALL}, oracle=oracle)
    assert shape(Stratus(scale_in_ratio=9).plan(seen))[0] == (
        "mixed",
        "m",
        ("brief", "long", "new"),
    )


def test_scale_out_takes_the_group_with_the_lowest_relative_cost() -> None:
    oracle = remaining(t1=20, t2=20, t3=20)
    seen = snapshot(task("t1", A), task("t2", A), task("t3", A), oracle=oracle)
    # Two on a medium one cost 180 instead of 200; a large one would cost 400 instead of 300.
    assert shape(Stratus().plan(seen)) == [(None, "m", ("t1", "t2")), (None, "s", ("t3",))]


def test_scale_out_groups_only_tasks_of_one_bin() -> None:
    seen = snapshot(task("t1", A), task("t2", A), oracle=remaining(t1=20, t2=100))
    assert shape(Stratus().plan(seen)) == [(None, "s", ("t1",)), (None, "s", ("t2",))]


def test_a_shorter_task_joins_what_was_launched_for_a_longer_one() -> None:
    wide = spec("w", cpus=12)
    seen = snapshot(task("t1", wide), task("t2", A), oracle=remaining(t1=100, t2=20))
    assert shape(Stratus().plan(seen)) == [(None, "l", ("t1", "t2"))]


def underused(*, movable: bool = True, host_minutes: float = 20) -> ClusterPlan:
    left: tuple[TaskView, ...] = (
        task("alone", A, on="big", movable=movable),
        task("host", A, on="half"),
    )
    oracle = remaining(alone=20, host=host_minutes)
    return Stratus().plan(snapshot(*left, present={"big": LARGE, "half": MEDIUM}, oracle=oracle))


def test_scale_in_clears_an_instance_that_costs_over_twice_its_tasks() -> None:
    assert shape(underused()) == [("half", "m", ("alone", "host"))]


def test_scale_in_leaves_what_may_not_move() -> None:
    assert len(underused(movable=False).instances) == 2


def test_scale_in_moves_nothing_to_a_shorter_bin() -> None:
    assert len(underused(host_minutes=2).instances) == 2


def test_scale_in_is_all_or_nothing() -> None:
    catalog = Catalog("with-huge", (SMALL, MEDIUM, LARGE, kind("xl", 0, 32, 128, 1000)))
    tasks = [task(name, A, on="big") for name in ("a1", "a2")] + [task("host", A, on="half")]
    seen = snapshot(
        *tasks,
        present={"big": catalog.types[0], "half": MEDIUM},
        oracle=remaining(a1=20, a2=20, host=20),
        catalog=catalog,
    )
    assert shape(Stratus().plan(seen)) == [
        ("big", "xl", ("a1", "a2")),
        ("half", "m", ("host",)),
    ]


def test_it_hardly_ever_moves_anything() -> None:
    rounds = Rounds(Stratus())
    left = {JobId(f"t{n}"): (n + 1) * HOUR_MS for n in range(8)}
    for number in range(8):
        rounds.round(task(f"t{number}", A), oracle=Oracle(left))
    for number in range(8):
        rounds.round(ending=(f"t{number}",), oracle=Oracle(left))
    assert rounds.moves <= 1
    assert rounds.instances == {}
