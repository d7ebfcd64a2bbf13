"""Bounds by hand, bounds by search instead of listing, and bounds over time."""

from __future__ import annotations

from collections import Counter

import pytest

from eva.model.catalog import Catalog
from eva.model.jobs import TaskSpec
from eva.model.units import MS_PER_HOUR, micros_to_usd
from eva.scheduling.exact import patterns
from eva.scheduling.exact.bounds import lower_bound, needs_of
from eva.scheduling.exact.patterns import Need
from eva.traces.load import load_trace
from tests.support.paper_example import CATALOG, TASKS, task
from tests.support.requirements import require, shared_folder
from tests.support.small_cluster import spec
from tests.support.ten_workloads import PAPER, PHYSICAL, draw_tasks, situation


def _needs(*names: str) -> list[Need]:
    return [Need(task(name).spec, 1, 1) for name in names]


def test_worked_example_is_bounded_by_its_optimum() -> None:
    bound = lower_bound(CATALOG, [Need(one.spec, 1, 1) for one in TASKS])
    assert bound.hourly_micros == 12_800_000
    assert sum(bound.duals_micros) == bound.hourly_micros


def test_a_task_alone_costs_its_reservation_price() -> None:
    assert lower_bound(CATALOG, _needs("t3")).hourly_micros == 800_000


def test_what_fits_nothing_has_no_price_and_spoils_nothing() -> None:
    needs = [Need(spec("huge", cpus=1_000), 5, 5), *_needs("t4")]
    bound = lower_bound(CATALOG, needs)
    assert bound.duals_micros == (0, 400_000)
    assert lower_bound(CATALOG, needs[:1]).hourly_micros == 0
    assert lower_bound(CATALOG, []).hourly_micros == 0


def test_equal_demands_are_priced_alike_and_bounded_together() -> None:
    twice = lower_bound(CATALOG, [*_needs("t2"), *_needs("t2")])
    once = lower_bound(CATALOG, [Need(task("t2").spec, 2, 2)])
    assert twice.hourly_micros == once.hourly_micros
    assert len(set(twice.duals_micros)) == 1


def test_amounts_of_time_scale_the_bound() -> None:
    hours = [Need(need.spec, need.amount * MS_PER_HOUR) for need in _needs("t1", "t2", "t4")]
    single = lower_bound(CATALOG, [Need(need.spec, 1) for need in _needs("t1", "t2", "t4")])
    assert lower_bound(CATALOG, hours).hourly_micros == single.hourly_micros * MS_PER_HOUR


def test_tasks_that_stop_each_other_cost_what_they_cost_alone() -> None:
    bound = lower_bound(CATALOG, _needs("t1", "t2", "t4"), lambda _a, _b: 1e-6)
    assert micros_to_usd(bound.hourly_micros) == pytest.approx(15.4, rel=1e-4)


@pytest.mark.parametrize("catalog", [PAPER, PHYSICAL], ids=lambda c: str(c.name))
@pytest.mark.parametrize("same", [1.0, 0.8])
def test_searching_comes_to_the_same_as_listing(
    catalog: Catalog, same: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = needs_of(situation(draw_tasks(200, seed=1), catalog).classes)
    throughput = None if same == 1.0 else lambda a, b: same if a == b else 0.97
    listed = lower_bound(catalog, needs, throughput).hourly_micros
    monkeypatch.setattr(patterns, "MOST_PARTIAL_SETS", 20)
    searched = lower_bound(catalog, needs, throughput).hourly_micros
    assert listed * 0.9999 <= searched <= listed + len(needs) + listed // 100_000


@pytest.mark.published
def test_bound_a_of_the_published_200_jobs() -> None:
    folder = shared_folder()
    require(folder, "the folder of published traces (EVA_SHARED, or ../shared)")
    assert folder is not None
    trace = load_trace(folder / "data" / "pai_200.json", PAPER)
    amounts: Counter[TaskSpec] = Counter()
    for job in trace.jobs:
        for one in job.spec.tasks:
            amounts[TaskSpec(one.workload, one.demand)] += job.duration_ms
    bound = lower_bound(PAPER, [Need(what, amount) for what, amount in amounts.items()])
    assert micros_to_usd(bound.hourly_micros // MS_PER_HOUR) == pytest.approx(11_643, rel=1e-4)
