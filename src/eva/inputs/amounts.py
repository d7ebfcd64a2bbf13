"""Text to amounts: exact, bounded, and with a message that says what to write instead.

`Decimal` alone accepts `1_000`, full-width digits and exponents that would fill the memory once
they are made an integer; a field of a file is held to what people mean by a number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from eva.model.units import (
    MIB_PER_GB,
    MICROS_PER_USD,
    MILLIS_PER_CPU,
    MS_PER_HOUR,
    MS_PER_SECOND,
    scaled,
)

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:[,' _\u00a0\u202f][0-9]{3})+(?:\.[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class Unit:
    """One kind of amount: how many of our integers make one of what people write, and bounds.

    `most` bounds what is written; it is generous, and there to catch slips of a unit.
    """

    noun: str
    factor: int
    most: int
    positive: bool = False  # zero is refused as well
    whole: bool = False


GPUS = Unit("GPUs", 1, 1_024, whole=True)
CPUS = Unit("CPUs", MILLIS_PER_CPU, 100_000)
MEMORY_GB = Unit("GB", MIB_PER_GB, 10_000_000)
USD_PER_HOUR = Unit("USD per hour", MICROS_PER_USD, 1_000_000, positive=True)
DELAY_S = Unit("seconds", MS_PER_SECOND, 7 * 86_400)
DURATION_H = Unit("hours", MS_PER_HOUR, 100 * 8_784)


def parse_number(text: str) -> Decimal:
    """A finite decimal as people write one, or ValueError with what to write instead."""
    word = text.strip()
    if not word:
        raise ValueError("is missing; write a number")
    if len(word) > _LONGEST:
        raise ValueError(f"{word[:20]}... is no sensible number")
    if _NUMBER.fullmatch(word):
        return Decimal(word)
    lowered = word.lower().lstrip("+-.")
    if lowered in {"nan", "inf", "infinity"}:
        raise ValueError(f"{word!r} is not a finite number")
    if _GROUPED.fullmatch(word):
        bare = re.sub(r"[^0-9.+-]", "", word)
        raise ValueError(f"{word!r} has a thousands separator; write {bare}")
    if _DECIMAL_COMMA.fullmatch(word):
        raise ValueError(f"{word!r} has a decimal comma; write {word.replace(',', '.')}")
    raise ValueError(f"{word!r} is not a number")


def parse_amount(text: str, unit: Unit) -> int:
    """`text` in our integers of `unit`, or ValueError that names the value and the bound."""
    value = parse_number(text)
    word = text.strip()
    if value < 0:
        raise ValueError(f"{word} is negative; {unit.noun} start at 0")
    if value > unit.most:
        raise ValueError(f"{word} is more than any sensible number of {unit.noun} ({unit.most:,})")
    if value and value.adjusted() < -30:  # keep the exponent small before scaling
        raise ValueError(f"{word} {unit.noun} is too little to count")
    if unit.whole and value != value.to_integral_value():
        raise ValueError(f"{word} is not a whole number of {unit.noun}")
    amount = scaled(value, unit.factor)
    if value and not amount:
        raise ValueError(f"{word} {unit.noun} is too little to count (least: {1 / unit.factor:g})")
    if unit.positive and not amount:
        raise ValueError(f"must be more than 0 {unit.noun}")
    return amount


def parse_rate(text: str, *, most: Decimal, noun: str) -> float:
    """A positive speed or share, for what is a measurement and not money or a resource."""
    value = parse_number(text)
    if value <= 0:
        raise ValueError(f"{text.strip()} is not positive; {noun} must be")
    if value > most:
        raise ValueError(f"{text.strip()} is more than {most:f}, the most that {noun} can be")
    rate = float(value)
    if rate == 0.0:
        raise ValueError(f"{text.strip()} is too small to count as {noun}")
    return rate
