"""Safety of whole plans, whatever the cluster looks like: full, partial and every ablation."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eva.model.ids import InstanceId, TaskId
from eva.model.plan import PlannedInstance
from eva.model.resources import Resources, total
from eva.model.snapshot import ClusterSnapshot, EventStatistics, InstanceView, TaskView
from eva.scheduling.eva import EvaPolicy, Reconfiguration
from eva.scheduling.policies import POLICY_NAMES, policy
from eva.scheduling.reconfiguration import full_reconfiguration, partial_reconfiguration
from eva.scheduling.situation import assess
from eva.scheduling.valuation import Valuation
from tests.support.strategies import catalogs, tables, task_lists

EVA_POLICIES = [name for name in POLICY_NAMES if name.startswith("eva")]


@st.composite
def snapshots(draw: st.DrawFn) -> ClusterSnapshot:
    """A cluster in the middle of its life: some tasks placed (within capacity), some not."""
    catalog, table = draw(catalogs()), draw(tables())
    tasks = draw(task_lists(multi_task=True))
    kinds = draw(st.lists(st.sampled_from(catalog.types), max_size=5))
    present: list[list[TaskView]] = [[] for _ in kinds]
    placed: list[TaskView] = []
    for task in tasks:
        slot = draw(st.integers(-1, len(kinds) - 1))
        if slot >= 0 and _fits([*present[slot], task], kinds[slot].family, kinds[slot].capacity):
            movable = draw(st.integers(0, 4)) > 0
            placed.append(replace(task, instance=InstanceId(f"i{slot}"), movable=movable))
            present[slot].append(task)
        else:
            placed.append(task)
    views = tuple(
        InstanceView(InstanceId(f"i{slot}"), kind, tuple(task.id for task in present[slot]))
        for slot, kind in enumerate(kinds)
    )
    statistics = EventStatistics(
        draw(st.integers(0, 20)), draw(st.integers(0, 20)), draw(st.integers(0, 10**8))
    )
    return ClusterSnapshot(0, catalog, tuple(placed), views, table, statistics)


def _fits(tasks: list[TaskView], family: str, capacity: Resources) -> bool:
    demands = [task.spec.demand.on(family) for task in tasks]
    return None not in demands and total(d for d in demands if d).fits_in(capacity)


@pytest.mark.parametrize("name", EVA_POLICIES)
@settings(max_examples=40, deadline=None)
@given(snapshot=snapshots())
def test_plans_are_safe(name: str, snapshot: ClusterSnapshot) -> None:
    plan = policy(name).plan(snapshot)
    tasks = {task.id: task for task in snapshot.tasks}
    present = {view.id: view for view in snapshot.instances}

    times = Counter(name for planned in plan.instances for name in planned.tasks)
    times.update(miss.task for miss in plan.unplaceable if tasks[miss.task].instance is None)
    assert times == Counter(tasks.keys()), "every task exactly once, placed or named"

    for planned in plan.instances:
        members = [tasks[name] for name in planned.tasks]
        assert _fits(members, planned.type.family, planned.type.capacity)
        if planned.instance is not None:
            assert present[planned.instance].type is planned.type
    reused = Counter(planned.instance for planned in plan.instances if planned.instance)
    assert all(count == 1 for count in reused.values())

    where = {name: planned.instance for planned in plan.instances for name in planned.tasks}
    for task in snapshot.tasks:
        if not task.movable:
            assert where[task.id] == task.instance, "what starts or moves is left alone"


@settings(max_examples=40, deadline=None)
@given(snapshot=snapshots())
def test_partial_leaves_paying_instances_alone(snapshot: ClusterSnapshot) -> None:
    situation = assess(snapshot, Valuation())
    planned = {p.instance: p for p in partial_reconfiguration(situation)}
    for view in situation.free:
        if view.tasks and situation.value(view) >= view.type.hourly_micros * 1024:
            assert set(view.tasks) <= set(planned[view.id].tasks)


@settings(max_examples=40, deadline=None)
@given(snapshot=snapshots())
def test_full_only_keeps_instances_that_are_worth_it(snapshot: ClusterSnapshot) -> None:
    situation = assess(snapshot, Valuation())
    fixed = {view.id for view in situation.fixed}
    for planned in full_reconfiguration(situation):
        if planned.instance not in fixed:
            assert planned.value_micros >= planned.type.hourly_micros


@settings(max_examples=40, deadline=None)
@given(snapshot=snapshots())
def test_a_full_plan_carried_out_is_not_improved_by_migrating_again(
    snapshot: ClusterSnapshot,
) -> None:
    """Planning on the outcome of a full plan moves nobody: there is no thrashing at rest."""
    first = EvaPolicy(considered=(Reconfiguration.FULL,)).plan(
        replace(snapshot, tasks=_all_movable(snapshot))
    )
    settled = _carried_out(snapshot, first.instances)
    second = EvaPolicy(considered=(Reconfiguration.FULL,)).plan(settled)
    where = {task.id: task.instance for task in settled.tasks}
    moved = [
        name
        for planned in second.instances
        for name in planned.tasks
        if where[name] is not None and where[name] != planned.instance
    ]
    assert moved == []


def _all_movable(snapshot: ClusterSnapshot) -> tuple[TaskView, ...]:
    return tuple(replace(task, movable=True) for task in snapshot.tasks)


def _carried_out(
    snapshot: ClusterSnapshot, planned: tuple[PlannedInstance, ...]
) -> ClusterSnapshot:
    instances: list[InstanceView] = []
    home: dict[TaskId, InstanceId] = {}
    for number, item in enumerate(planned):
        name = InstanceId(f"new{number}")
        instances.append(InstanceView(name, item.type, item.tasks))
        home.update(dict.fromkeys(item.tasks, name))
    tasks = tuple(
        replace(task, instance=home.get(task.id), movable=True) for task in snapshot.tasks
    )
    return replace(snapshot, tasks=tasks, instances=tuple(instances))
