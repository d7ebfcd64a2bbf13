"""The attribution rules, one by one, and every case that the paper leaves open."""

from __future__ import annotations

import math

import pytest

from eva.model.colocation import Entry, ThroughputTable
from eva.model.ids import JobId, TaskId, Workload
from eva.scheduling.attribution import TaskObservation, attribute

A, B, C, D = (Workload(name) for name in "abcd")
EMPTY = ThroughputTable()


def single(workload: Workload, throughput: float | None, name: str = "") -> TaskObservation:
    job = name or f"single-{workload}"
    return TaskObservation(TaskId(f"{job}.0"), JobId(job), workload, throughput)


def part(
    index: int, workload: Workload, throughput: float | None, of: int = 2, job: str = "multi"
) -> TaskObservation:
    return TaskObservation(TaskId(f"{job}.{index}"), JobId(job), workload, throughput, of)


def known(*entries: tuple[Workload, tuple[Workload, ...], float]) -> ThroughputTable:
    return EMPTY.record(Entry(*entry) for entry in entries)


# ------------------------------------------------------------------------- single-task jobs


def test_single_task_jobs_record_directly() -> None:
    assert attribute([[single(A, 0.8), single(B, 0.9)]], EMPTY) == (
        Entry(A, (B,), 0.8),
        Entry(B, (A,), 0.9),
    )


def test_the_whole_surroundings_are_the_key_with_repeats() -> None:
    group = [single(B, 0.5, "x"), single(A, 0.6), single(B, 0.5, "y")]
    assert attribute([group], EMPTY) == (Entry(A, (B, B), 0.6), Entry(B, (A, B), 0.5))


def test_a_direct_observation_overwrites_up_and_down() -> None:
    table = known((A, (B,), 0.7), (B, (A,), 0.9))
    assert attribute([[single(A, 0.8), single(B, 0.85)]], table) == (
        Entry(A, (B,), 0.8),
        Entry(B, (A,), 0.85),
    )


def test_alone_is_never_recorded() -> None:
    assert attribute([[single(A, 0.5)], [single(B, 1.0)]], EMPTY) == ()


@pytest.mark.parametrize("silent", [None, 0.0, -0.1, math.nan, math.inf])
def test_an_instance_enters_only_if_every_task_on_it_reports(silent: float | None) -> None:
    quiet = [single(A, 0.8), single(B, silent)]
    assert attribute([quiet], EMPTY) == ()
    assert attribute([quiet, [single(C, 0.7), single(D, 0.6)]], EMPTY) == (
        Entry(C, (D,), 0.7),
        Entry(D, (C,), 0.6),
    )


def test_faster_than_alone_counts_as_one() -> None:
    assert attribute([[single(A, 1.2), single(B, 1.0)]], EMPTY) == (
        Entry(A, (B,), 1.0),
        Entry(B, (A,), 1.0),
    )


def test_single_task_jobs_that_disagree_count_at_the_slower_in_any_order() -> None:
    groups = [
        [single(A, 0.8, "x"), single(B, 0.9, "y")],
        [single(A, 0.7, "z"), single(B, 0.95, "w")],
    ]
    expected = (Entry(A, (B,), 0.7), Entry(B, (A,), 0.9))
    assert attribute(groups, EMPTY) == expected
    assert attribute(groups[::-1], EMPTY) == expected


def test_nothing_new_is_nothing() -> None:
    assert attribute([], EMPTY) == ()
    assert attribute([[]], EMPTY) == ()
    table = known((A, (B,), 0.8), (B, (A,), 0.9))
    assert attribute([[single(A, 0.8), single(B, 0.9)]], table) == ()


# -------------------------------------------------------------------------- multi-task jobs
# Their neighbours are single-task jobs whose own entries are recorded beforehand.

BESIDE = [(C, (A,), 0.9), (C, (B,), 0.9), (D, (A, C), 0.9), (C, (A, D), 0.9)]


def job_of_two(throughput: float) -> list[list[TaskObservation]]:
    """Task 0 (a) beside c and d, task 1 (b) beside c."""
    return [
        [part(0, A, throughput), single(C, 0.9, "c0"), single(D, 0.9, "d0")],
        [part(1, B, throughput), single(C, 0.9, "c1")],
    ]


def test_rule_1_nothing_recorded_the_most_neighbours() -> None:
    assert attribute(job_of_two(0.8), known(*BESIDE)) == (Entry(A, (C, D), 0.8),)


def test_rule_2_the_recorded_that_is_lower_is_raised() -> None:
    table = known(*BESIDE, (B, (C,), 0.7))
    assert attribute(job_of_two(0.8), table) == (Entry(B, (C,), 0.8),)


def test_rule_2_goes_on_until_nothing_is_lower() -> None:
    table = known(*BESIDE, (A, (C, D), 0.6), (B, (C,), 0.7))
    assert attribute(job_of_two(0.8), table) == (Entry(A, (C, D), 0.8), Entry(B, (C,), 0.8))


def test_rule_3_all_recorded_higher_the_most_neighbours_of_the_others() -> None:
    table = known(*BESIDE, (A, (C, D), 0.9))
    assert attribute(job_of_two(0.8), table) == (Entry(B, (C,), 0.8),)


def test_recorded_equal_to_observed_explains_it() -> None:
    table = known(*BESIDE, (A, (C, D), 0.8))
    assert attribute(job_of_two(0.8), table) == ()


def test_a_contradiction_lowers_the_lowest() -> None:
    table = known(*BESIDE, (A, (C, D), 0.95), (B, (C,), 0.9))
    assert attribute(job_of_two(0.8), table) == (Entry(B, (C,), 0.8),)


def test_a_contradiction_between_equals_goes_to_the_most_neighbours() -> None:
    table = known(*BESIDE, (A, (C, D), 0.9), (B, (C,), 0.9))
    assert attribute(job_of_two(0.8), table) == (Entry(A, (C, D), 0.8),)


def test_equally_many_neighbours_go_by_task_id() -> None:
    groups = [[part(1, B, 0.8), single(C, 0.9, "x")], [part(0, A, 0.8), single(C, 0.9, "y")]]
    assert attribute(groups, known(*BESIDE)) == (Entry(A, (C,), 0.8),)


def test_a_job_that_runs_alone_everywhere_says_nothing() -> None:
    assert attribute([[part(0, A, 0.5)], [part(1, A, 0.5)]], EMPTY) == ()


def test_a_task_that_runs_alone_is_never_blamed() -> None:
    groups = [[part(0, A, 0.8)], [part(1, B, 0.8), single(C, 0.9)]]
    assert attribute(groups, known(*BESIDE)) == (Entry(B, (C,), 0.8),)
    assert attribute(groups, known(*BESIDE, (B, (C,), 0.95))) == (Entry(B, (C,), 0.8),)


def test_full_speed_beside_others_is_worth_recording() -> None:
    groups = [[part(0, A, 1.0)], [part(1, B, 1.0), single(C, 0.9)]]
    assert attribute(groups, known(*BESIDE)) == (Entry(B, (C,), 1.0),)


def test_tasks_of_a_job_that_disagree_count_at_the_slowest() -> None:
    groups = [[part(0, A, 0.9), single(C, 0.9, "x")], [part(1, B, 0.8), single(C, 0.9, "y")]]
    assert attribute(groups, known(*BESIDE)) == (Entry(A, (C,), 0.8),)


def test_nobody_is_blamed_while_a_sibling_is_out_of_sight() -> None:
    assert attribute([[part(0, A, 0.8), single(C, 0.9)]], known(*BESIDE)) == ()
    hidden = [part(1, B, 0.8), single(D, None)]
    assert attribute([[part(0, A, 0.8), single(C, 0.9)], hidden], known(*BESIDE)) == ()


def test_what_is_too_low_is_raised_even_so() -> None:
    table = known(*BESIDE, (A, (C,), 0.7))
    assert attribute([[part(0, A, 0.8), single(C, 0.9)]], table) == (Entry(A, (C,), 0.8),)


def test_siblings_on_one_instance_are_neighbours() -> None:
    assert attribute([[part(0, A, 0.8), part(1, B, 0.8)]], EMPTY) == (Entry(A, (B,), 0.8),)


def test_siblings_in_equal_surroundings_share_an_entry() -> None:
    groups = [[part(i, A, 0.8), single(C, 0.9, f"c{i}")] for i in range(2)]
    assert attribute(groups, known(*BESIDE)) == (Entry(A, (C,), 0.8),)


def test_single_task_jobs_are_heard_before_multi_task_jobs() -> None:
    # The lone job on the third instance shows that a beside c runs at 0.8, so b is not to blame.
    groups = [
        [part(0, A, 0.8), single(C, 0.9, "c0")],
        [part(1, B, 0.8), single(C, 0.9, "c1")],
        [single(A, 0.8, "a"), single(C, 0.9, "c2")],
    ]
    assert attribute(groups, known(*BESIDE)) == (Entry(A, (C,), 0.8),)


def test_the_order_of_groups_and_tasks_is_irrelevant() -> None:
    groups = [*job_of_two(0.8), [single(A, 0.7, "x"), part(0, B, 0.9, 1, "y")]]
    backwards = [group[::-1] for group in reversed(groups)]
    assert attribute(groups, EMPTY) == attribute(backwards, EMPTY)
