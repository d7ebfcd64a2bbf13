from __future__ import annotations

from functools import reduce
from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eva.model.units import (
    cost_micros,
    format_duration,
    format_usd,
    micros_to_usd,
    parse_decimal,
    scaled,
    seconds_to_ms,
    usd_to_micros,
)


def test_eight_times_3_06_is_24_48() -> None:
    assert 8 * usd_to_micros("3.06") == usd_to_micros("24.48")
    assert reduce(add, [3.06] * 8) < 24.48  # the reason why money is an integer here


def test_floats_are_read_as_they_are_written() -> None:
    assert usd_to_micros(0.08925) == 89_250
    assert seconds_to_ms(0.1) == 100


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "x", ""])
def test_amounts_of_nothing_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        parse_decimal(text)


@pytest.mark.parametrize(("value", "rounded"), [("0.5", 0), ("1.5", 2), ("2.5", 2), ("-0.5", 0)])
def test_halves_round_to_even(value: str, rounded: int) -> None:
    assert scaled(value, 1) == rounded


def test_cost_is_rounded_half_up() -> None:
    assert cost_micros(3_600_000, 1) == 1
    assert cost_micros(1_800_000, 1) == 1
    assert cost_micros(1_799_999, 1) == 0


@given(st.integers(0, 10**9), st.integers(0, 10**10), st.integers(0, 10**10))
def test_cost_in_parts_is_the_cost_of_the_whole(price: int, first: int, second: int) -> None:
    parts = cost_micros(price, first) + cost_micros(price, second)
    assert abs(parts - cost_micros(price, first + second)) <= 1


@given(st.integers(0, 10**12))
def test_micros_survive_dollars(micros: int) -> None:
    assert usd_to_micros(micros_to_usd(micros)) == micros


@pytest.mark.parametrize(
    ("micros", "places", "text"),
    [(1_234_500_000, 2, "$1,234.50"), (-400_000, 2, "-$0.40"), (89_250, 5, "$0.08925")],
)
def test_dollars_as_text(micros: int, places: int, text: str) -> None:
    assert format_usd(micros, places) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (45_000, "45s"),
        (59_999, "1m00s"),
        (725_000, "12m05s"),
        (12_000_000, "3h20m"),
        (187_200_000, "2d04h"),
    ],
)
def test_durations_as_text(ms: int, text: str) -> None:
    assert format_duration(ms) == text
