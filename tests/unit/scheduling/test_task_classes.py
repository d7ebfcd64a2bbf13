"""Classes: tasks that packing cannot tell apart, in a stated order."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from eva.model.catalog import Catalog
from eva.model.jobs import TaskDelays, TaskSpec
from eva.model.snapshot import TaskView
from eva.scheduling.reservation_price import price_book
from eva.scheduling.task_classes import class_of_task, classify, job_worth
from tests.support.small_cluster import CATALOG, spec, task
from tests.support.strategies import catalogs, task_lists

BOOK = price_book(CATALOG)
SMALL, MEDIUM, GIANT = spec("s", 4), spec("m", 6), spec("g", 1000)


def shapes(*tasks: TaskView) -> list[tuple[str, int, tuple[str, ...]]]:
    """(workload, others' worth, tasks) of each class."""
    classes, _ = classify(tasks, BOOK, job_worth(tasks, BOOK))
    return [(group.spec.workload, group.others_micros, group.tasks) for group in classes]


def test_equal_specs_are_one_class_even_as_different_objects() -> None:
    assert shapes(task("b", spec("s", 4)), task("a", spec("s", 4))) == [("s", 0, ("a", "b"))]


def test_anything_that_differs_makes_another_class() -> None:
    slow_to_move = TaskSpec(SMALL.workload, SMALL.demand, delays=TaskDelays(1000, 0))
    assert len(shapes(task("a", SMALL), task("b", spec("s", 3)), task("c", slow_to_move))) == 3


def test_siblings_count_with_what_they_are_worth() -> None:
    tasks = (task("a", MEDIUM, job="j"), task("c", SMALL), task("b", SMALL, job="j"))
    assert shapes(*tasks) == [("m", 100, ("a",)), ("s", 180, ("b",)), ("s", 0, ("c",))]


def test_worth_is_taken_over_all_live_tasks_also_those_not_being_placed() -> None:
    everyone = (task("a", SMALL, job="j"), task("b", SMALL, job="j"))
    classes, _ = classify(everyone[:1], BOOK, job_worth(everyone, BOOK))
    assert [group.others_micros for group in classes] == [100]


def test_a_sibling_that_fits_nothing_is_worth_nothing() -> None:
    everyone = (task("a", SMALL, job="j"), task("b", GIANT, job="j"))
    assert job_worth(everyone, BOOK) == {"j": 100}


def test_dearest_first_then_largest_then_by_workload() -> None:
    tasks = (task("1", spec("z", 4)), task("2", spec("a", 3)), task("3", MEDIUM), task("4", SMALL))
    assert [workload for workload, *_ in shapes(*tasks)] == ["m", "s", "z", "a"]


def test_what_fits_nothing_is_named_and_the_rest_goes_on() -> None:
    tasks = (task("y", GIANT), task("x", GIANT), task("a", SMALL))
    classes, unplaceable = classify(tasks, BOOK, job_worth(tasks, BOOK))
    assert [group.tasks for group in classes] == [("a",)]
    assert [one.task for one in unplaceable] == ["x", "y"]
    assert "1000 CPU" in unplaceable[0].reason


def test_no_tasks_no_classes() -> None:
    assert classify((), BOOK, {}) == ((), ())


@given(catalog=catalogs(), tasks=task_lists(multi_task=True), seed=st.integers())
def test_classes_are_a_partition_and_the_order_of_tasks_is_irrelevant(
    catalog: Catalog, tasks: tuple[TaskView, ...], seed: int
) -> None:
    book = price_book(catalog)
    shuffled = Random(seed).sample(tasks, len(tasks))
    classes, unplaceable = classify(tasks, book, job_worth(tasks, book))
    again, _ = classify(shuffled, book, job_worth(shuffled, book))
    assert [group.tasks for group in classes] == [group.tasks for group in again]
    where = class_of_task(classes)
    assert where.keys() | {one.task for one in unplaceable} == {one.id for one in tasks}
    assert len(where) + len(unplaceable) == len(tasks)
    for one in tasks:
        if one.id in where:
            assert classes[where[one.id]].spec == one.spec
