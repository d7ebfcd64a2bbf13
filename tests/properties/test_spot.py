"""Whatever is offered on spot: only what allows it goes there, and nobody else notices."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eva.model.catalog import Catalog
from eva.model.colocation import ThroughputTable
from eva.model.ids import InstanceId
from eva.model.snapshot import ClusterSnapshot, InstanceView, TaskView
from eva.scheduling.policies import policy
from eva.scheduling.spot import Rate, SpotRisk, with_spot
from tests.support.small_cluster import overfull, shape
from tests.support.strategies import catalogs, tables, task_lists

POLICIES = ("eva", "eva-published", "eva-full-only", "eva-rp", "no-packing", "synergy", "optimal")
MINUTE_MS = 60_000


@st.composite
def spot_catalogs(draw: st.DrawFn) -> Catalog:
    """Prices on spot for some types, cheaper or dearer; any risk, none at all included."""
    catalog: Catalog = draw(catalogs())
    prices = st.none() | st.integers(1, 12_000_000)
    priced = catalog.with_types(replace(kind, spot_hourly_micros=draw(prices)) for kind in catalog)
    rate = st.builds(Rate, st.integers(0, 9), st.integers(1, 600).map(lambda n: n * MINUTE_MS))
    rates = draw(st.dictionaries(st.sampled_from(["g:spot", "c:spot"]), rate))
    return with_spot(priced, SpotRisk(), rates)


def on_demand_only(catalog: Catalog) -> Catalog:
    return Catalog(catalog.name, tuple(kind for kind in catalog if not kind.spot))


@st.composite
def mixed_tasks(draw: st.DrawFn) -> tuple[TaskView, ...]:
    tasks = draw(task_lists(multi_task=True, most=8))
    willing = {job for job in sorted({task.job for task in tasks}) if draw(st.booleans())}
    return tuple(
        replace(task, spec=replace(task.spec, demand=replace(task.spec.demand, spot=True)))
        if task.job in willing
        else task
        for task in tasks
    )


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=40, deadline=None)
@given(catalog=spot_catalogs(), tasks=mixed_tasks(), table=tables())
def test_nothing_is_on_spot_that_does_not_allow_it(
    name: str, catalog: Catalog, tasks: tuple[TaskView, ...], table: ThroughputTable
) -> None:
    plan = policy(name).plan(ClusterSnapshot(0, catalog, tasks, table=table))
    by_id = {task.id: task for task in tasks}
    for planned in plan.instances:
        if planned.type.spot:
            assert all(by_id[one].spec.demand.spot for one in planned.tasks)
    assert not overfull(plan, by_id)
    assert plan.billed_micros + plan.risk_micros == plan.hourly_micros
    assert plan.billed_micros > 0 or not plan.instances
    placed = {one for planned in plan.instances for one in planned.tasks}
    assert placed | {missing.task for missing in plan.unplaceable} == by_id.keys()


@pytest.mark.parametrize("name", ["eva", "eva-published", "no-packing"])
@settings(max_examples=40, deadline=None)
@given(catalog=spot_catalogs(), tasks=task_lists(multi_task=True), table=tables())
def test_where_nobody_allows_spot_nothing_is_planned_differently(
    name: str, catalog: Catalog, tasks: tuple[TaskView, ...], table: ThroughputTable
) -> None:
    with_offerings = policy(name).plan(ClusterSnapshot(0, catalog, tasks, table=table))
    without = policy(name).plan(ClusterSnapshot(0, on_demand_only(catalog), tasks, table=table))
    assert shape(with_offerings) == shape(without)


@settings(max_examples=60, deadline=None)
@given(catalog=spot_catalogs(), tasks=mixed_tasks(), data=st.data())
def test_what_is_up_on_spot_can_be_planned_for_when_it_is_not_offered_any_more(
    catalog: Catalog, tasks: tuple[TaskView, ...], data: st.DataObject
) -> None:
    """Its price is too old, or the cloud has refused the type meanwhile."""
    planned = policy("eva").plan(ClusterSnapshot(0, catalog, tasks)).instances
    views = tuple(
        InstanceView(InstanceId(f"i{n}"), each.type, each.tasks) for n, each in enumerate(planned)
    )
    home = {one: view.id for view in views for one in view.tasks}
    there = tuple(
        replace(task, instance=home.get(task.id), movable=data.draw(st.booleans()))
        for task in tasks
    )
    left = catalog.offering(kind for kind in catalog if not kind.spot)
    plan = policy("eva").plan(ClusterSnapshot(0, left, there, views))
    assert not overfull(plan, {task.id: task for task in there})
    assert all(each.instance is not None for each in plan.instances if each.type.spot)
