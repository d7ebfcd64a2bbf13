"""The throughput window: right on steady tasks of any pace, falling on stalls, bounded always."""

from __future__ import annotations

from itertools import pairwise

import pytest
from eva_iterator.throughput import POINTS_PER_WINDOW, StepHistory
from hypothesis import given
from hypothesis import strategies as st


def run(
    history: StepHistory, step_ms: int, *, until_ms: int, report_ms: int, begin_ms: int = 0
) -> None:
    """A task with a step every `step_ms`, looked at every `report_ms`."""
    base = history.steps or 0
    for now_ms in range(begin_ms + report_ms, until_ms + 1, report_ms):
        history.observe(now_ms, base + (now_ms - begin_ms) // step_ms)


def test_unknown_until_two_points() -> None:
    history = StepHistory()
    assert history.rate(0) is None
    history.observe(0, 5)
    assert history.rate(60_000) is None
    history.observe(1_000, 7)
    assert history.rate(1_000) == pytest.approx(2.0)


@pytest.mark.parametrize("step_ms", [1, 70, 1_000, 7_000, 45_000])
def test_steady_pace_is_measured_at_any_moment(step_ms: int) -> None:
    history = StepHistory(600_000)
    run(history, step_ms, until_ms=900_000, report_ms=1_000)
    for later_ms in (0, 300, 900):
        assert history.rate(900_000 + later_ms) == pytest.approx(1000 / step_ms, rel=0.02)


def test_only_the_window_counts() -> None:
    history = StepHistory(600_000)
    run(history, 1_000, until_ms=1_000_000, report_ms=1_000)
    run(history, 250, until_ms=1_600_000, report_ms=1_000, begin_ms=1_000_000)
    assert history.rate(1_600_000) == pytest.approx(4.0, rel=0.02)


def test_a_change_of_pace_shows_in_proportion() -> None:
    history = StepHistory(100_000)
    run(history, 1_000, until_ms=100_000, report_ms=1_000)
    run(history, 500, until_ms=150_000, report_ms=1_000, begin_ms=100_000)
    assert history.rate(150_000) == pytest.approx(1.5, rel=0.05)


def test_a_stall_lowers_the_rate_to_nothing() -> None:
    history = StepHistory(60_000)
    run(history, 100, until_ms=60_000, report_ms=1_000)
    rates = [history.rate(60_000 + stalled_ms) for stalled_ms in range(0, 70_000, 5_000)]
    assert rates[0] == pytest.approx(10.0, rel=0.05)
    known = [rate for rate in rates if rate is not None]
    assert known == sorted(known, reverse=True)
    assert known[-1] == 0.0


def test_a_past_stall_does_not_excuse_the_next() -> None:
    history = StepHistory(600_000)
    run(history, 100, until_ms=100_000, report_ms=1_000)
    run(history, 100, until_ms=300_000, report_ms=1_000, begin_ms=200_000)
    now, later = history.rate(300_000), history.rate(400_000)
    assert now is not None
    assert later is not None
    assert later < 0.8 * now


def test_a_count_that_falls_starts_over() -> None:
    history = StepHistory()
    history.observe(1_000, 100)
    history.observe(2_000, 200)
    history.observe(3_000, 150)
    assert history.rate(3_000) is None
    history.observe(4_000, 160)
    assert history.rate(4_000) == pytest.approx(10.0)


def test_every_increase_counts_and_what_is_late_does_not() -> None:
    history = StepHistory()
    for at_ms, steps in ((1_000, 1), (2_000, 5), (2_000, 10), (1_990, 11), (1_500, 3), (2_000, 9)):
        history.observe(at_ms, steps)
    assert history.points() == ((1_000, 1), (2_000, 11))


def test_a_window_must_last() -> None:
    with pytest.raises(ValueError, match="longer than zero"):
        StepHistory(0)


@given(
    st.integers(1, 1_000_000),
    st.lists(st.tuples(st.integers(-(10**12), 10**12), st.integers(0, 2**63 - 1)), max_size=300),
    st.integers(-(10**12), 10**12),
)
def test_any_reports_leave_it_sane(
    window_ms: int, reports: list[tuple[int, int]], now_ms: int
) -> None:
    history = StepHistory(window_ms)
    for at_ms, steps in reports:
        history.observe(at_ms, steps)
    points = history.points()
    assert len(points) <= POINTS_PER_WINDOW * 2 + 2
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(points))
    rate = history.rate(now_ms)
    assert rate is None or rate >= 0


def test_memory_is_bounded_over_a_long_run() -> None:
    history = StepHistory(600_000)
    run(history, 3, until_ms=3_000_000, report_ms=250)
    assert len(history.points()) <= POINTS_PER_WINDOW + 3
