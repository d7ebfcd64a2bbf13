"""The ensemble: what it weighs, when, and how it tells why."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from eva.model.ids import InstanceId
from eva.model.snapshot import ClusterSnapshot, EventStatistics, InstanceView, TaskView
from eva.scheduling.eva import PUBLISHED, EvaPolicy, Reconfiguration
from eva.scheduling.valuation import Valuation
from tests.support import paper_example as example

HOUR_MS = 3_600_000


def _apart() -> ClusterSnapshot:
    """The worked example with every task running alone on its own instance."""
    homes = {"t1": "it1", "t2": "it2", "t3": "it3", "t4": "it4"}
    instances, tasks = [], []
    for task in example.TASKS:
        kind = example.CATALOG.get(homes[task.id])
        assert kind is not None
        instances.append(InstanceView(InstanceId(f"i-{task.id}"), kind, (task.id,)))
        tasks.append(replace(task, instance=InstanceId(f"i-{task.id}")))
    return ClusterSnapshot(0, example.CATALOG, tuple(tasks), tuple(instances))


def _after(events: int, full: int, *, news: int = 1) -> EventStatistics:
    return EventStatistics(events, full, HOUR_MS, news)


PLAIN = Valuation(interference=False)


def test_savings_that_last_are_worth_a_migration() -> None:
    plan = EvaPolicy(valuation=PLAIN, considered=PUBLISHED).plan(_apart())
    assert plan.decision.chosen == "full"
    assert {planned.type.name for planned in plan.instances} == {"it1", "it3"}


def test_savings_that_soon_end_are_not() -> None:
    """Thousands of events an hour, each triggering a full reconfiguration: D is seconds."""
    slow = tuple(_slow_to_move(task) for task in _apart().tasks)
    snapshot = replace(_apart(), tasks=slow, statistics=_after(100_000, 99_999))
    plan = EvaPolicy(valuation=PLAIN, considered=PUBLISHED).plan(snapshot)
    assert plan.decision.chosen == "partial"
    assert {planned.instance for planned in plan.instances} == {
        view.id for view in snapshot.instances
    }


def _slow_to_move(task: TaskView) -> TaskView:
    delays = type(task.spec.delays)(HOUR_MS, HOUR_MS)
    return replace(task, spec=replace(task.spec, delays=delays))


def test_without_news_only_partial_is_considered() -> None:
    quiet = replace(_apart(), statistics=_after(10, 1, news=0))
    decision = EvaPolicy(valuation=PLAIN).plan(quiet).decision
    assert decision.chosen == "partial"
    assert [candidate.name for candidate in decision.candidates] == ["partial"]
    assert "no job arrived or ended" in decision.reason


def test_without_news_and_without_change_the_plan_is_the_same_object() -> None:
    policy = EvaPolicy()
    quiet = replace(_apart(), statistics=_after(10, 1, news=0))
    first = policy.plan(quiet)
    assert policy.plan(replace(quiet, now_ms=300_000)) is first
    changed = replace(quiet, tasks=quiet.tasks[:3], instances=quiet.instances[:3])
    assert policy.plan(changed) is not first


def test_the_decision_carries_every_candidate_in_dollars() -> None:
    decision = EvaPolicy(valuation=PLAIN).plan(_apart()).decision
    by_name = {candidate.name: candidate for candidate in decision.candidates}
    assert set(by_name) == {"partial", "full", "full by sets"}
    assert by_name["partial"].migration_micros == 0
    assert by_name["partial"].hourly_micros == 16_200_000
    assert by_name["full"].hourly_micros == 12_800_000
    assert by_name["full"].migrated_tasks >= 2


@pytest.mark.parametrize("only", list(Reconfiguration))
def test_a_single_candidate_is_taken_whatever_the_news(only: Reconfiguration) -> None:
    policy = EvaPolicy(considered=(only,))
    for news in (0, 1):
        plan = policy.plan(replace(_apart(), statistics=_after(10, 1, news=news)))
        assert plan.decision.chosen == only.value


def test_a_policy_travels_to_another_process_without_its_memory() -> None:
    policy = EvaPolicy()
    policy.plan(replace(_apart(), statistics=_after(10, 1, news=0)))
    assert pickle.loads(pickle.dumps(policy)) == policy
