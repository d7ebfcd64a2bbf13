"""Units: milliseconds, micro-dollars, millicores, mebibytes, all integers, unit last in the name.

Conversions to and from what people write live here and nowhere else. They go through `Decimal`,
so that "3.06" becomes exactly 3,060,000 micro-dollars.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

MS_PER_SECOND = 1_000
MS_PER_HOUR = 3_600_000
MICROS_PER_USD = 1_000_000
MILLIS_PER_CPU = 1_000
MIB_PER_GB = 1_024


def parse_decimal(text: str) -> Decimal:
    """A finite decimal number, or ValueError: NaN and infinity are never amounts of anything."""
    try:
        value = Decimal(str(text).strip())
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a number") from None
    if not value.is_finite():
        raise ValueError(f"{text!r} is not a finite number")
    return value


def scaled(value: Decimal | float | str, factor: int) -> int:
    """`value * factor` rounded half to even, exact for anything written in decimal."""
    exact = value if isinstance(value, Decimal) else parse_decimal(str(value))
    return int((exact * factor).to_integral_value(rounding=ROUND_HALF_EVEN))


def usd_to_micros(usd: Decimal | float | str) -> int:
    return scaled(usd, MICROS_PER_USD)


def micros_to_usd(micros: int) -> float:
    return micros / MICROS_PER_USD


def seconds_to_ms(seconds: Decimal | float | str) -> int:
    return scaled(seconds, MS_PER_SECOND)


def cost_micros(hourly_micros: int, duration_ms: int) -> int:
    """What `duration_ms` of something at `hourly_micros` an hour costs, rounded half up."""
    return (2 * hourly_micros * duration_ms + MS_PER_HOUR) // (2 * MS_PER_HOUR)


def format_usd(micros: int, places: int = 2) -> str:
    """`$1,234.50`; small hourly prices are better shown with `places=4`."""
    sign = "-" if micros < 0 else ""
    return f"{sign}${abs(micros) / MICROS_PER_USD:,.{places}f}"


def format_duration(duration_ms: int) -> str:
    """`45s`, `12m05s`, `3h20m`, `2d04h`: two units at most, what a person would say."""
    seconds = round(duration_ms / MS_PER_SECOND)
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3_600:
        return f"{seconds // 60}m{seconds % 60:02d}s"
    if seconds < 86_400:
        return f"{seconds // 3_600}h{seconds % 3_600 // 60:02d}m"
    return f"{seconds // 86_400}d{seconds % 86_400 // 3_600:02d}h"
