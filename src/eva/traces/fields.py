"""Checked reading of the fields of one record, the same for every format.

A `Record` is one row or object of a trace and the place where it stands. Each reading answers a
usable value whatever it finds, and complains to the collector where something was wrong, so that
one pass over a file finds everything. A trace with any problem is never used, so the stand-ins do
not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from eva.inputs.amounts import (
    CPUS,
    GPUS,
    MEMORY_GB,
    Unit,
    parse_amount,
    parse_number,
    parse_rate,
)
from eva.inputs.problems import Problems
from eva.model.units import MIB_PER_GB, MILLIS_PER_CPU, MS_PER_SECOND

_CENTURY_S = 100 * 366 * 86_400

SECONDS = Unit("seconds", MS_PER_SECOND, _CENTURY_S)
MILLISECONDS = Unit("milliseconds", 1, _CENTURY_S * MS_PER_SECOND, whole=True)
GPU_SHARES = Unit("GPUs", 1_000, GPUS.most)
GPU_MILLIS = Unit("thousandths of a GPU", 1, GPUS.most * 1_000, whole=True)
CPU_MILLIS = Unit("thousandths of a CPU", 1, CPUS.most * MILLIS_PER_CPU, whole=True)
MEMORY_MIB = Unit("MiB", 1, MEMORY_GB.most * MIB_PER_GB, whole=True)
_MOST_ITERATIONS = Decimal(10) ** 15
_FASTEST_PER_S = Decimal(10) ** 9

_SHOWN = 40
_NUMBERS = (int, float)
_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Record:
    """One row or object being read. Absent and empty fields are both missing.

    `line` is 0 where the format has no lines worth naming; `place` then says where.
    """

    problems: Problems
    values: Mapping[str, object]
    line: int = 0
    place: str = ""

    def complain(self, name: str, message: str) -> None:
        self.problems.add(self.line, message, f"{self.place} {name}".strip() or None)

    def inside(self, place: str, values: Mapping[str, object]) -> Record:
        """A record that is part of this one."""
        return Record(self.problems, values, self.line, f"{self.place} {place}".strip())

    def has(self, name: str) -> bool:
        return self.values.get(name) not in (None, "")

    def whole(self, name: str, unit: Unit) -> int:
        """An amount in our integers of `unit`."""
        found = _amount(self._written(name), unit)
        if isinstance(found, str):
            self.complain(name, found)
            return 0
        return found

    def iterations(self, name: str) -> float:
        try:
            value = parse_number(self._written(name))
        except ValueError as error:
            self.complain(name, str(error))
            return 0.0
        if not 0 <= value <= _MOST_ITERATIONS:
            self.complain(name, f"{value:g} is no number of iterations; they start at 0")
            return 0.0
        return float(value)

    def throughput(self, name: str) -> float:
        """Iterations per second, more than 0."""
        return self.rate(name, most=_FASTEST_PER_S, noun="throughput")

    def rate(self, name: str, *, most: Decimal, noun: str) -> float:
        """A measurement, more than 0."""
        try:
            return parse_rate(self._written(name), most=most, noun=noun)
        except ValueError as error:
            self.complain(name, str(error))
            return 1.0

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
        missing = value is None or value == ""
        self.complain(name, "is missing" if missing else f"{shown(value)} is not text")
        return ""

    def label(self, name: str) -> str:
        """A name that may also be written as a number."""
        value = self.values.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return self.text(name)

    def flag(self, name: str) -> bool:
        value = self.values.get(name)
        known = _FLAGS.get(value.strip().lower()) if isinstance(value, str) else value
        if isinstance(known, bool):
            return known
        self.complain(name, f"{shown(value)} is neither true nor false")
        return False

    def _written(self, name: str) -> str:
        """A number as it would be written; what is none becomes text that is none."""
        value = self.values.get(name)
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        return repr(value) if type(value) in _NUMBERS else shown(value)  # bool is no number here


def shown(value: object) -> str:
    """A value as it goes into a message, cut short where it is absurdly long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@lru_cache(maxsize=65_536)
def _amount(text: str, unit: Unit) -> int | str:
    """The amount, or what is wrong with it. Kept: a trace repeats few values often."""
    try:
        return parse_amount(text, unit)
    except ValueError as error:
        return str(error)
