"""D-hat: the formula, and what happens at its edges."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eva.model.snapshot import EventStatistics
from eva.model.units import MS_PER_HOUR
from eva.scheduling.event_rate import estimated_horizon_hours, horizon_hours


def test_the_formula() -> None:
    assert horizon_hours(6.0, 0.1) == pytest.approx(-1 / (6 * math.log(0.9)))


def test_an_event_that_always_triggers_leaves_no_time_to_save() -> None:
    assert horizon_hours(6.0, 1.0) == 0.0


@pytest.mark.parametrize(("rate", "probability"), [(6.0, 0.0), (0.0, 0.5)])
def test_if_nothing_ever_triggers_savings_last_for_ever(rate: float, probability: float) -> None:
    assert horizon_hours(rate, probability) == math.inf


def test_before_the_first_event_the_horizon_is_infinite() -> None:
    assert estimated_horizon_hours(EventStatistics(0, 0, MS_PER_HOUR)) == math.inf
    assert estimated_horizon_hours(EventStatistics(3, 0, 0)) == math.inf


@given(st.integers(1, 1000), st.integers(0, 2000), st.integers(1, 10**9))
def test_an_estimate_from_data_is_finite_and_positive(events: int, full: int, span: int) -> None:
    horizon = estimated_horizon_hours(EventStatistics(events, full, span))
    assert 0 < horizon < math.inf


@given(st.floats(0.01, 0.98), st.floats(0.001, 0.01), st.floats(0.1, 100))
def test_the_likelier_a_full_reconfiguration_the_shorter_the_horizon(
    probability: float, more: float, rate: float
) -> None:
    assert horizon_hours(rate, probability + more) < horizon_hours(rate, probability)
