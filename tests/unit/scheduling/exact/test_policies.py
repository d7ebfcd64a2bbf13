"""The exact policies as policies: quality, what they must leave alone, and what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eva.model.catalog import Catalog
from eva.model.colocation import Entry, ThroughputTable
from eva.model.ids import Workload
from eva.model.jobs import StandaloneThroughput
from eva.scheduling.exact import rounding
from eva.scheduling.exact.bounds import lower_bound, needs_of
from eva.scheduling.exact.choose import cost_of
from eva.scheduling.exact.covering import least_cost
from eva.scheduling.exact.ilp import MOST_TASKS, IlpPolicy
from eva.scheduling.exact.net_value import NetValuePolicy
from eva.scheduling.exact.optimal import OptimalPolicy
from eva.scheduling.packing import full_stock, pack
from eva.scheduling.policy import SchedulingPolicy
from eva.scheduling.valuation import Valuation
from tests.support import paper_example
from tests.support.small_cluster import LARGE, MEDIUM, SMALL, Rounds, shape, snapshot, spec, task
from tests.support.ten_workloads import PAPER, PHYSICAL, PLAIN, draw_tasks, situation

COST = OptimalPolicy(valuation=PLAIN)
ALL: tuple[SchedulingPolicy, ...] = (COST, OptimalPolicy(), NetValuePolicy(), IlpPolicy())


def _name(policy: object) -> str:
    guarded = isinstance(policy, OptimalPolicy) and policy.valuation.interference
    return f"{getattr(policy, 'name', policy)}{'-guarded' if guarded else ''}"


@pytest.mark.parametrize("policy", [COST, IlpPolicy()], ids=_name)
def test_worked_example_of_the_paper(policy: SchedulingPolicy) -> None:
    plan = policy.plan(paper_example.snapshot())
    assert plan.hourly_micros == 12_800_000
    assert shape(plan) == [(None, "it1", ("t1", "t2", "t4")), (None, "it3", ("t3",))]


@pytest.mark.parametrize("catalog", [PAPER, PHYSICAL], ids=lambda c: str(c.name))
def test_200_tasks_come_within_half_a_percent_of_the_bound(catalog: Catalog) -> None:
    ratios = []
    for seed in range(6):
        known = situation(draw_tasks(200, seed), catalog)
        stock = full_stock(known.classes)
        answer = least_cost(known.packer, catalog, stock)
        bound = lower_bound(catalog, needs_of(known.classes)).hourly_micros
        assert answer.bound_micros == bound
        assert answer.hourly_micros <= cost_of(pack(known.packer, catalog, stock))
        ratios.append(answer.hourly_micros / bound)
    assert max(ratios) <= 1.015
    assert sum(ratios) / len(ratios) <= 1.004


def test_proof_closes_the_gap() -> None:
    known = situation(draw_tasks(200, seed=2), PHYSICAL)
    stock = full_stock(known.classes)
    quick = least_cost(known.packer, PHYSICAL, stock)
    proven = least_cost(known.packer, PHYSICAL, stock, prove_ms=20_000)
    assert not quick.proven
    assert proven.proven
    assert proven.hourly_micros < quick.hourly_micros
    assert quick.bound_micros <= proven.bound_micros <= proven.hourly_micros


def test_an_answer_is_held_when_the_solver_runs_out_of_time_with_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = situation(draw_tasks(200, seed=2), PHYSICAL)
    stock = full_stock(known.classes)
    quick = least_cost(known.packer, PHYSICAL, stock)
    nothing = rounding.Proof(None, float("-inf"))
    monkeypatch.setattr("eva.scheduling.exact.covering.whole_numbers", lambda *_: nothing)
    late = least_cost(known.packer, PHYSICAL, stock, prove_ms=1)
    assert late == quick
    assert sum(p.copies * sum(n for _, n in p.members) for p in late.patterns) == 200


@pytest.mark.parametrize("policy", ALL, ids=_name)
def test_what_cannot_move_stays_and_its_instance_is_filled(policy: SchedulingPolicy) -> None:
    starting = task("starting", spec("a"), on="i1", movable=False)
    waiting = task("waiting", spec("b"))
    plan = policy.plan(snapshot(starting, waiting, present={"i1": MEDIUM}))
    assert shape(plan) == [("i1", "m", ("starting", "waiting"))]


@pytest.mark.parametrize("policy", ALL, ids=_name)
def test_a_present_instance_of_the_right_type_is_reused(policy: SchedulingPolicy) -> None:
    running = task("running", spec("a"), on="i7")
    plan = policy.plan(snapshot(running, present={"i3": LARGE, "i7": SMALL}))
    assert shape(plan) == [("i7", "s", ("running",))]


@pytest.mark.parametrize("policy", ALL, ids=_name)
def test_what_fits_nothing_is_named(policy: SchedulingPolicy) -> None:
    plan = policy.plan(snapshot(task("huge", spec("a", cpus=99)), task("fine", spec("b"))))
    assert [entry.task for entry in plan.unplaceable] == ["huge"]
    assert shape(plan) == [(None, "s", ("fine",))]
    nothing = policy.plan(snapshot())
    assert nothing.instances == ()


@pytest.mark.parametrize("policy", ALL, ids=_name)
def test_nothing_moves_when_nothing_happens(policy: SchedulingPolicy) -> None:
    rounds = Rounds(policy)
    rounds.round(*(task(f"t{n}", spec(f"w{n % 3}", cpus=2 + n % 3)) for n in range(9)))
    launched = rounds.launched
    rounds.round()
    assert (rounds.launched, rounds.moves) == (launched, 0)


def test_cost_alone_would_pile_up_what_the_guard_keeps_apart() -> None:
    slow = ThroughputTable().record(
        [Entry(Workload("a"), (Workload("b"),), 0.5), Entry(Workload("b"), (Workload("a"),), 0.5)]
    )
    seen = snapshot(task("one", spec("a")), task("two", spec("b")), table=slow)
    assert shape(COST.plan(seen)) == [(None, "m", ("one", "two"))]
    assert shape(OptimalPolicy().plan(seen)) == [(None, "s", ("one",)), (None, "s", ("two",))]


def test_a_cheap_type_on_which_tasks_crawl_is_no_bargain() -> None:
    """At half the speed, 60 an hour is 120 an hour's work; the task's own price is 100."""
    fast = replace(LARGE, name="fast", family="fast", hourly_micros=100)
    slow = replace(LARGE, name="slow", family="slow", hourly_micros=60)
    speeds = StandaloneThroughput(None, (("fast", 1.0), ("slow", 0.5)))
    crawling = replace(spec("a", cpus=16), throughput=speeds)
    seen = snapshot(task("one", crawling), catalog=Catalog("two", (fast, slow)))
    assert shape(COST.plan(seen)) == [(None, "fast", ("one",))]


def test_decision_states_cost_and_bound() -> None:
    plan = COST.plan(paper_example.snapshot())
    assert "$12.8000" in plan.decision.reason
    assert "proven optimal" in plan.decision.reason


def test_program_steps_aside_for_algorithm_1_when_tasks_are_many() -> None:
    many = snapshot(*(task(f"t{n:02d}", spec("a")) for n in range(MOST_TASKS + 1)))
    plan = IlpPolicy().plan(many)
    assert "Algorithm 1" in plan.decision.reason
    assert sum(len(planned.tasks) for planned in plan.instances) == MOST_TASKS + 1


def test_program_uses_the_demand_of_each_family() -> None:
    known = situation(draw_tasks(6, seed=4), PAPER)
    stock = full_stock(known.classes)
    plan = IlpPolicy().plan(known.snapshot)
    assert plan.hourly_micros == least_cost(known.packer, PAPER, stock, 10_000).hourly_micros


def test_hundreds_of_classes_still_get_an_answer_and_a_bound() -> None:
    tasks = [
        task(f"t{n:03d}", spec(f"w{n}", cpus=1 + n % 7 + n / 1000, memory_gb=1 + n % 11))
        for n in range(400)
    ]
    seen = snapshot(*tasks)
    known = situation(seen.tasks, seen.catalog)
    answer = least_cost(known.packer, seen.catalog, np.ones(len(known.classes), dtype=np.int64))
    assert 0 < answer.bound_micros <= answer.hourly_micros
    assert sum(len(planned.tasks) for planned in NetValuePolicy().plan(seen).instances) == 400


def test_single_task_valuation_is_respected() -> None:
    """A slowed sibling costs its whole job, unless told to forget that."""
    table = ThroughputTable().record([Entry(Workload("a"), (Workload("b"),), 0.9)])
    seen = snapshot(
        *(task(f"a{n}", spec("a"), job="gang") for n in range(1, 4)),
        task("b", spec("b")),
        table=table.record([Entry(Workload("b"), (Workload("a"),), 1.0)]),
    )
    forgetful = NetValuePolicy(valuation=Valuation(multi_task=False))
    assert any({"a1", "b"} == set(p.tasks) for p in forgetful.plan(seen).instances)
    assert all(
        "b" not in p.tasks or len(p.tasks) == 1 for p in NetValuePolicy().plan(seen).instances
    )
