"""What the bounds and the exact policies promise, on clusters drawn at random."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from eva.model.catalog import Catalog, InstanceType
from eva.model.colocation import ThroughputTable
from eva.model.snapshot import ClusterSnapshot, TaskView
from eva.scheduling.exact.bounds import Bound, lower_bound, needs_of
from eva.scheduling.exact.choose import cost_of, net_value_of
from eva.scheduling.exact.covering import least_cost
from eva.scheduling.exact.ilp import solve
from eva.scheduling.exact.net_value import NetValuePolicy, greatest_net_value
from eva.scheduling.exact.optimal import OptimalPolicy
from eva.scheduling.packing import Packer, Pattern, full_stock, pack
from eva.scheduling.policy import SchedulingPolicy
from eva.scheduling.reservation_price import price_book
from eva.scheduling.situation import Situation, assess
from eva.scheduling.valuation import QUANTA_PER_MICRO, Valuation
from tests.support.small_cluster import overfull
from tests.support.strategies import WORKLOADS, catalogs, tables, task_lists, throughputs

PLAIN = Valuation(interference=False)
POLICIES: tuple[SchedulingPolicy, ...] = (
    OptimalPolicy(),
    OptimalPolicy(valuation=PLAIN),
    NetValuePolicy(),
)
ENOUGH_MS = 10_000


def _situation(
    tasks: tuple[TaskView, ...],
    catalog: Catalog,
    table: ThroughputTable | None = None,
    valuation: Valuation = PLAIN,
) -> Situation:
    snapshot = ClusterSnapshot(0, catalog, tasks, table=table or ThroughputTable())
    return assess(snapshot, valuation)


def _bound(tasks: tuple[TaskView, ...], catalog: Catalog) -> Bound:
    return lower_bound(catalog, needs_of(_situation(tasks, catalog).classes))


@settings(max_examples=60, deadline=None)
@given(task_lists(multi_task=True), catalogs(), tables(), st.sampled_from(POLICIES))
def test_plans_hold_every_task_once_within_capacity_and_worth_its_price(
    tasks: tuple[TaskView, ...],
    catalog: Catalog,
    table: ThroughputTable,
    policy: SchedulingPolicy,
) -> None:
    plan = policy.plan(ClusterSnapshot(0, catalog, tasks, table=table))
    placed = [name for planned in plan.instances for name in planned.tasks]
    unplaceable = [entry.task for entry in plan.unplaceable]
    assert sorted([*placed, *unplaceable]) == sorted(task.id for task in tasks)
    book = price_book(catalog)
    assert set(unplaceable) == {task.id for task in tasks if book.price(task.spec) is None}
    assert overfull(plan, {task.id: task for task in tasks}) == []
    assert all(planned.saving_micros >= 0 for planned in plan.instances)


@settings(max_examples=60, deadline=None)
@given(task_lists(), catalogs(), tables(), st.sampled_from(POLICIES))
def test_order_of_input_is_irrelevant(
    tasks: tuple[TaskView, ...],
    catalog: Catalog,
    table: ThroughputTable,
    policy: SchedulingPolicy,
) -> None:
    snapshot = ClusterSnapshot(0, catalog, tasks, table=table)
    backwards = replace(snapshot, tasks=tuple(reversed(tasks)))
    assert policy.plan(snapshot) == policy.plan(backwards)


@settings(max_examples=60, deadline=None)
@given(task_lists(), catalogs())
def test_bound_optimum_and_algorithm_1_come_in_this_order(
    tasks: tuple[TaskView, ...], catalog: Catalog
) -> None:
    situation = _situation(tasks, catalog)
    stock = full_stock(situation.classes)
    bound = _bound(tasks, catalog).hourly_micros
    quick = least_cost(situation.packer, catalog, stock)
    proven = least_cost(situation.packer, catalog, stock, ENOUGH_MS)
    greedy = cost_of(pack(situation.packer, catalog, stock))
    assert bound <= proven.bound_micros <= proven.hourly_micros <= quick.hourly_micros <= greedy
    assert proven.proven


@settings(max_examples=25, deadline=None)
@given(task_lists(most=6), catalogs())
def test_patterns_prove_what_the_papers_program_finds(
    tasks: tuple[TaskView, ...], catalog: Catalog
) -> None:
    situation = _situation(tasks, catalog)
    stock = full_stock(situation.classes)
    by_program = solve(situation.packer, catalog, stock, ENOUGH_MS)
    by_patterns = least_cost(situation.packer, catalog, stock, ENOUGH_MS)
    assert by_program is not None
    assert cost_of(by_program) == by_patterns.hourly_micros
    assert by_patterns.bound_micros <= cost_of(by_program)


@settings(max_examples=60, deadline=None)
@given(task_lists(), catalogs(), st.data())
def test_a_cheaper_type_never_raises_the_bound(
    tasks: tuple[TaskView, ...], catalog: Catalog, data: st.DataObject
) -> None:
    """To the micro-dollar per task that prices are rounded down by."""
    model = data.draw(st.sampled_from(catalog.types))
    price = data.draw(st.integers(1, model.hourly_micros))
    cheaper = InstanceType("cheaper", model.family, model.capacity, price)
    placeable = _situation(tasks, catalog).classes
    before = lower_bound(catalog, needs_of(placeable)).hourly_micros
    after = lower_bound(catalog.with_types([*catalog, cheaper]), needs_of(placeable)).hourly_micros
    assert after <= before + len(tasks)


@settings(max_examples=60, deadline=None)
@given(task_lists(), catalogs(), st.data())
def test_another_task_never_lowers_the_bound(
    tasks: tuple[TaskView, ...], catalog: Catalog, data: st.DataObject
) -> None:
    fewer = tasks[: data.draw(st.integers(0, len(tasks)))]
    assert _bound(fewer, catalog).hourly_micros <= _bound(tasks, catalog).hourly_micros + len(tasks)


@settings(max_examples=60, deadline=None)
@given(task_lists(), catalogs(), st.data())
def test_known_interference_only_raises_the_bound(
    tasks: tuple[TaskView, ...], catalog: Catalog, data: st.DataObject
) -> None:
    pairs = {(a, b): data.draw(throughputs) for a in WORKLOADS for b in WORKLOADS}
    needs = needs_of(_situation(tasks, catalog).classes)
    plain = lower_bound(catalog, needs)
    slowed = lower_bound(catalog, needs, lambda a, b: pairs[a, b])
    alone = lower_bound(catalog, needs, lambda _a, _b: 1e-9)
    # Work done is rounded up to a millionth of a task, so prices may be lower by as much.
    rounding = 20 * len(tasks) + plain.hourly_micros // 100_000
    assert plain.hourly_micros <= slowed.hourly_micros + rounding
    assert slowed.hourly_micros <= alone.hourly_micros + rounding


@settings(max_examples=60, deadline=None)
@given(task_lists(), catalogs())
def test_no_instance_type_holds_tasks_priced_at_more_than_itself(
    tasks: tuple[TaskView, ...], catalog: Catalog
) -> None:
    """The proof, checked on whatever Algorithm 1 and the exact policies come up with."""
    situation = _situation(tasks, catalog)
    stock = full_stock(situation.classes)
    prices = lower_bound(catalog, needs_of(situation.classes)).duals_micros
    answers = [
        *pack(situation.packer, catalog, stock),
        *least_cost(situation.packer, catalog, stock).patterns,
    ]
    for pattern in answers:
        priced = sum(prices[index] * count for index, count in pattern.members)
        assert priced <= pattern.type.hourly_micros


@settings(max_examples=60, deadline=None)
@given(task_lists(multi_task=True), catalogs(), tables())
def test_net_value_is_at_least_algorithm_1s_and_its_sets_within_the_bound(
    tasks: tuple[TaskView, ...], catalog: Catalog, table: ThroughputTable
) -> None:
    situation = _situation(tasks, catalog, table, Valuation())
    stock = full_stock(situation.classes)
    answer = greatest_net_value(situation.packer, catalog, stock, doubt=1.0)
    assert answer.net_micros >= net_value_of(pack(situation.packer, catalog, stock)) // (
        QUANTA_PER_MICRO
    )
    _assert_valued_as_they_are(situation.packer, answer.patterns)
    if all(sum(count for _, count in p.members) <= 4 for p in answer.patterns):
        assert answer.net_micros <= answer.bound.hourly_micros + len(tasks)


def _assert_valued_as_they_are(packer: Packer, patterns: list[Pattern]) -> None:
    for pattern in patterns:
        exact = packer.value(pattern.type.family, pattern.members)
        assert abs(pattern.value - exact) <= 2 * QUANTA_PER_MICRO
