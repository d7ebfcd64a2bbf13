"""Hourly prices as people read them: enough decimals to tell cheap instances apart, no more."""

from __future__ import annotations

from collections.abc import Iterable

from eva.model.units import MICROS_PER_USD

_CENT_MICROS = MICROS_PER_USD // 100


def places_for(prices_micros: Iterable[int]) -> int:
    """2 where all prices are whole cents, else 4: the same for everything shown together."""
    return 2 if all(price % _CENT_MICROS == 0 for price in prices_micros) else 4


def percent(share: float) -> str:
    """`+3.1%`, `-21.0%`, `0.0%`."""
    rounded = round(100 * share, 1)
    return f"{rounded:+.1f}%" if rounded else "0.0%"
