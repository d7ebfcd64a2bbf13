"""Prices with their age: the last good copy, and whether money may be saved by it.

A refresh that fails, wholly or for some types, leaves the old prices where they are, with their old
dates. A price older than a week is still good enough to rent by, since somebody has to run the
jobs; it is not good enough to interrupt jobs that run, so no migration to save cost rests on it.
"""

from __future__ import annotations

import datetime as dt
import enum
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eva.adapters.local.folder import write_durably
from eva.model.catalog import Catalog
from eva.model.errors import OperatorError
from eva.model.units import MS_PER_HOUR, MS_PER_SECOND, format_duration

STALE_AFTER_MS = 7 * 24 * MS_PER_HOUR


class Market(enum.Enum):
    ON_DEMAND = "on-demand"
    SPOT = "spot"


@dataclass(frozen=True, slots=True)
class Price:
    hourly_micros: int
    as_of_ms: int

    def __post_init__(self) -> None:
        if self.hourly_micros <= 0:
            raise ValueError(f"{self.hourly_micros} micro-dollars an hour is no price")

    @property
    def date(self) -> str:
        return dt.datetime.fromtimestamp(self.as_of_ms / MS_PER_SECOND, dt.UTC).date().isoformat()

    def stale(self, now_ms: int) -> bool:
        """A date in the future is no better than one long past: some clock is wrong."""
        return abs(now_ms - self.as_of_ms) > STALE_AFTER_MS


@dataclass(frozen=True, slots=True)
class Prices:
    """By market and type. Values, never changed in place."""

    known: Mapping[tuple[Market, str], Price] = field(default_factory=dict)

    def of(self, name: str, market: Market = Market.ON_DEMAND) -> Price | None:
        return self.known.get((market, name))

    def refreshed(self, market: Market, found: Mapping[str, int], now_ms: int) -> Prices:
        """With what was found just now; all else as it was. What is no price is passed over."""
        fresh = {
            (market, name): Price(micros, now_ms) for name, micros in found.items() if micros > 0
        }
        return Prices({**self.known, **fresh})

    def completed(self, catalog: Catalog) -> Prices:
        """With the on-demand prices of a catalog where none is known, or only an older one."""
        listed = {}
        for kind in catalog:
            key = (Market.ON_DEMAND, kind.name)
            known = self.known.get(key)
            as_of_ms = _start_of(kind.price_as_of)
            if kind.hourly_micros > 0 and (known is None or known.as_of_ms < as_of_ms):
                listed[key] = Price(kind.hourly_micros, as_of_ms)
        return Prices({**self.known, **listed})

    def unfit(
        self, names: Iterable[str], now_ms: int, market: Market = Market.ON_DEMAND
    ) -> list[str]:
        """Why no migration that only saves cost may rest on these prices; empty if it may."""
        reasons = []
        for name in names:
            price = self.of(name, market)
            if price is None:
                reasons.append(f"{name}: no {market.value} price is known")
            elif price.stale(now_ms):
                age = format_duration(abs(now_ms - price.as_of_ms))
                reasons.append(f"{name}: its {market.value} price of {price.date} is {age} old")
        return reasons


class PriceFile:
    """The last good copy on disk. A file that cannot be read is as good as none, and said so."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.problem = ""

    def load(self) -> Prices:
        self.problem = ""
        try:
            return Prices(dict(map(_read, json.loads(self._path.read_text())["prices"])))
        except FileNotFoundError:
            self.problem = f"{self._path} does not exist yet"
        except (OSError, ValueError, KeyError, TypeError) as error:
            self.problem = f"{self._path} cannot be used ({error}); prices are fetched anew"
        return Prices()

    def save(self, prices: Prices) -> None:
        rows = [
            [market.value, name, price.hourly_micros, price.as_of_ms]
            for (market, name), price in sorted(
                prices.known.items(), key=lambda item: (item[0][0].value, item[0][1])
            )
        ]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_durably(self._path, {"prices": rows})
        except OSError as error:
            raise OperatorError(
                f"the prices cannot be kept in {self._path} ({error}): free space there, or mend "
                "its permissions"
            ) from error


def _start_of(date: str) -> int:
    """A price without a date is as old as can be."""
    if not date:
        return 0
    return round(dt.datetime.fromisoformat(date).replace(tzinfo=dt.UTC).timestamp()) * MS_PER_SECOND


def _read(row: list[Any]) -> tuple[tuple[Market, str], Price]:
    market, name, micros, as_of_ms = row
    if not (isinstance(name, str) and type(micros) is int and type(as_of_ms) is int):
        raise TypeError(f"{row} is no price")
    return (Market(market), name), Price(micros, as_of_ms)
