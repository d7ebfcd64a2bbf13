"""What every baseline must keep, on any cluster that hypothesis can think of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random

from hypothesis import given, note
from hypothesis import strategies as st

from eva.model.catalog import Catalog, InstanceType
from eva.model.ids import InstanceId
from eva.model.oracle import Oracle
from eva.model.plan import ClusterPlan
from eva.model.resources import Resources
from eva.model.snapshot import ClusterSnapshot, InstanceView, TaskView
from eva.scheduling.baselines.no_packing import NoPacking
from eva.scheduling.baselines.owl import Owl
from eva.scheduling.baselines.stratus import Stratus
from eva.scheduling.baselines.synergy import Synergy
from eva.scheduling.policy import SchedulingPolicy
from eva.scheduling.reservation_price import fits_alone, price_book
from tests.support.small_cluster import overfull
from tests.support.strategies import WORKLOADS, catalogs, tables, task_lists

BASELINES: tuple[SchedulingPolicy, ...] = (NoPacking(), Stratus(), Synergy(), Owl())


def _sized(name: str, times: int, hourly_micros: int) -> InstanceType:
    capacity = Resources(4 * times, 16_000 * times, 32 * 1024 * times)
    return InstanceType(name, "g", capacity, hourly_micros)


# The smallest holds every task that is drawn, two on one are a bargain, and one alone on the
# largest is a waste: with a catalog drawn at random such things are rare.
ROOMY = Catalog("roomy", (_sized("one", 1, 100), _sized("two", 2, 150), _sized("four", 4, 350)))

NOBODY = InstanceId("")
STAYING = {"no-packing", "synergy"}  # never move a task

PAIRS = list(product(WORKLOADS, repeat=2))
remaining_times = st.sampled_from([3_600_000, 60_000, 0])
paces = st.sampled_from([0.8, 0.85, 0.5, 1.0])


def answers(seen: ClusterSnapshot) -> Iterator[tuple[SchedulingPolicy, ClusterPlan]]:
    """Every baseline's plan; drawing a cluster costs far more than planning it."""
    for policy in BASELINES:
        note(policy.name)
        yield policy, policy.plan(seen.granting(policy.knowledge))


@st.composite
def clusters(draw: st.DrawFn) -> ClusterSnapshot:
    """Tasks that wait or run, some immovable, on instances that hold them, some of them empty."""
    catalog = draw(st.just(ROOMY) | catalogs())
    instances = [
        InstanceView(InstanceId(f"i{number}"), draw(st.sampled_from(catalog.types)))
        for number in range(draw(st.integers(0, 5)))
    ]
    tasks = _seated(draw, draw(task_lists(multi_task=draw(st.booleans()))), instances)
    views = tuple(
        replace(view, tasks=tuple(one.id for one in tasks if one.instance == view.id))
        for view in instances
    )
    left = {one.job: draw(remaining_times) for one in tasks}
    pace = draw(st.lists(paces, min_size=len(PAIRS), max_size=len(PAIRS)))
    profile = dict(zip(PAIRS, pace, strict=True))
    oracle = Oracle(left, lambda one, other: profile[one, other])
    return ClusterSnapshot(0, catalog, tasks, views, table=draw(tables()), oracle=oracle)


def _seated(
    draw: st.DrawFn, tasks: tuple[TaskView, ...], instances: list[InstanceView]
) -> tuple[TaskView, ...]:
    """Each task on a drawn instance if it still fits there, else waiting."""
    room = {view.id: view.type.capacity for view in instances}
    seated: list[TaskView] = []
    for one in tasks:
        view = draw(st.none() | st.sampled_from(instances)) if instances else None
        needed = None if view is None else one.spec.demand.on(view.type.family)
        if view is None or needed is None or not needed.fits_in(room[view.id]):
            seated.append(one)
            continue
        room[view.id] = room[view.id].minus(needed)
        seated.append(replace(one, instance=view.id, movable=draw(st.booleans())))
    return tuple(seated)


def _placeable(one: TaskView, catalog: Catalog) -> bool:
    return price_book(catalog).price(one.spec) is not None


@given(seen=clusters())
def test_every_task_has_one_place_or_a_reason(seen: ClusterSnapshot) -> None:
    specs = {one.id: one.spec for one in seen.tasks}
    expected = {one.id for one in seen.tasks if one.instance or _placeable(one, seen.catalog)}
    for _, plan in answers(seen):
        placed = Counter(one for planned in plan.instances for one in planned.tasks)
        assert set(placed.values()) <= {1}
        assert set(placed) == expected
        assert {one.task for one in plan.unplaceable} == specs.keys() - expected
        for one in plan.unplaceable:
            assert one.reason
            assert not any(fits_alone(specs[one.task], kind) for kind in seen.catalog)


@given(seen=clusters())
def test_instances_hold_their_tasks_and_none_is_empty_or_named_twice(
    seen: ClusterSnapshot,
) -> None:
    present = {view.id: view.type for view in seen.instances}
    for _, plan in answers(seen):
        assert overfull(plan, {one.id: one for one in seen.tasks}) == []
        assert all(planned.tasks for planned in plan.instances)
        kept = [planned for planned in plan.instances if planned.instance is not None]
        assert len(kept) == len({planned.instance for planned in kept})
        assert all(present.get(planned.instance or NOBODY) == planned.type for planned in kept)


@given(seen=clusters())
def test_what_may_not_move_does_not(seen: ClusterSnapshot) -> None:
    for policy, plan in answers(seen):
        where = {one: planned.instance for planned in plan.instances for one in planned.tasks}
        for one in seen.tasks:
            if one.instance is not None and (not one.movable or policy.name in STAYING):
                assert where[one.id] == one.instance


@given(seen=clusters(), seed=st.integers())
def test_the_order_of_tasks_is_irrelevant_and_the_answer_always_the_same(
    seen: ClusterSnapshot, seed: int
) -> None:
    shuffled = Random(seed).sample(seen.tasks, len(seen.tasks))
    for policy, plan in answers(seen):
        granted = seen.granting(policy.knowledge)
        assert policy.plan(granted) == plan
        assert policy.plan(replace(granted, tasks=tuple(shuffled))) == plan


@given(seen=clusters())
def test_new_instances_are_no_dearer_than_their_tasks_apart(seen: ClusterSnapshot) -> None:
    book = price_book(seen.catalog)
    specs = {one.id: one.spec for one in seen.tasks}
    for _, plan in answers(seen):
        for planned in plan.instances:
            if planned.instance is None:
                prices = [book.price(specs[one]) for one in planned.tasks]
                apart = sum(price.hourly_micros for price in prices if price is not None)
                assert planned.type.hourly_micros <= apart


@given(seen=clusters())
def test_no_packing_launches_one_instance_for_each_waiting_task(seen: ClusterSnapshot) -> None:
    new = [one for one in NoPacking().plan(seen.granting(())).instances if one.instance is None]
    assert all(len(one.tasks) == 1 for one in new)


@given(seen=clusters())
def test_owl_adds_only_pairs_that_get_along(seen: ClusterSnapshot) -> None:
    owl = Owl()
    before = {one.id: one.instance for one in seen.tasks}
    workloads = {one.id: one.spec.workload for one in seen.tasks}
    for planned in owl.plan(seen.granting(owl.knowledge)).instances:
        if all(planned.instance == before[one] for one in planned.tasks):
            continue  # as it was
        assert len(planned.tasks) <= 2
        if len(planned.tasks) == 2:
            one, other = (workloads[name] for name in planned.tasks)
            pace = min(seen.oracle.pair(one, other), seen.oracle.pair(other, one))
            assert pace >= owl.least_throughput
