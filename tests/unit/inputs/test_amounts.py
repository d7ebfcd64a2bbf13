from __future__ import annotations

import contextlib
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eva.inputs.amounts import (
    CPUS,
    GPUS,
    MEMORY_GB,
    USD_PER_HOUR,
    Unit,
    parse_amount,
    parse_number,
    parse_rate,
)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("3.06", 3_060_000),
        ("0.08925", 89_250),
        (" 24.48 ", 24_480_000),
        ("1e1", 10_000_000),
        ("+.5", 500_000),
    ],
)
def test_prices_are_exact(text: str, amount: int) -> None:
    assert parse_amount(text, USD_PER_HOUR) == amount


def test_minus_zero_is_zero() -> None:
    assert parse_amount("-0", GPUS) == 0
    assert str(parse_amount("-0.0", CPUS)) == "0"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("NaN", "not a finite number"),
        ("-nan", "not a finite number"),
        (".inf", "not a finite number"),
        ("Infinity", "not a finite number"),
        ("", "is missing"),
        ("four", "'four' is not a number"),
        ("1,000", "thousands separator; write 1000"),
        ("1_000", "thousands separator; write 1000"),
        ("1,234,567.5", "thousands separator; write 1234567.5"),
        ("0,5", "decimal comma; write 0.5"),
        ("\uff11\uff12", "is not a number"),
        ("0x10", "is not a number"),
        ("1e9999999", "is not a number"),
        ("9" * 500, "no sensible number"),
    ],
)
def test_what_is_no_number_says_what_to_write(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        parse_number(text)


@pytest.mark.parametrize(
    ("text", "unit", "complaint"),
    [
        ("-1", GPUS, "is negative"),
        ("0.5", GPUS, "not a whole number of GPUs"),
        ("1e400", CPUS, "more than any sensible number of CPUs"),
        ("1e999999", MEMORY_GB, "more than any sensible number of GB"),
        ("1e-999999", MEMORY_GB, "too little to count"),
        ("0.0001", CPUS, "too little to count (least: 0.001)"),
        ("0", USD_PER_HOUR, "must be more than 0"),
    ],
)
def test_amounts_are_bounded(text: str, unit: Unit, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        parse_amount(text, unit)


def test_a_rate_is_positive_and_bounded() -> None:
    assert parse_rate("2.5", most=Decimal(10), noun="speed") == 2.5
    for text in ("0", "-1", "11", "1e-99999"):
        with pytest.raises(ValueError, match="speed"):
            parse_rate(text, most=Decimal(10), noun="speed")


@given(st.text(max_size=12))
def test_any_text_is_an_amount_or_a_complaint(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert 0 <= parse_amount(text, CPUS) <= CPUS.most * CPUS.factor


@given(st.integers(0, 10**9))
def test_every_price_in_micros_survives_writing_and_reading(micros: int) -> None:
    text = f"{micros // 1_000_000}.{micros % 1_000_000:06d}"
    if micros:
        assert parse_amount(text, USD_PER_HOUR) == micros
