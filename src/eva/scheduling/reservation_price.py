"""Reservation price: the most that hosting a task is worth, per hour.

It is the price of the cheapest instance type that fits the task alone. Where a task runs at
different speeds on different families, it is instead the least cost of one iteration; times the
speed on the family at hand it becomes dollars an hour again. Both forms are one here: `on(family)`
is the hourly worth of the task at full speed on that family, and without stated speeds it is the
same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from eva.model.catalog import Catalog, InstanceType
from eva.model.jobs import TaskSpec
from eva.model.resources import Resources


@dataclass(frozen=True, slots=True, eq=False)
class ReservationPrice:
    """The price, the type that sets it, and the worth on each family."""

    hourly_micros: int
    type: InstanceType
    by_family: dict[str, int]

    def on(self, family: str) -> int:
        return self.by_family[family]


class PriceBook:
    """Reservation prices under one catalog, each computed once per distinct task spec."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._prices: dict[TaskSpec, ReservationPrice | None] = {}

    def price(self, spec: TaskSpec) -> ReservationPrice | None:
        """None where no instance type can host the task."""
        try:
            return self._prices[spec]
        except KeyError:
            found = self._prices[spec] = _reservation_price(self.catalog, spec)
            return found


@lru_cache(maxsize=16)
def price_book(catalog: Catalog) -> PriceBook:
    """The one price book of a catalog."""
    return PriceBook(catalog)


def fits_alone(spec: TaskSpec, kind: InstanceType) -> bool:
    needed = spec.demand.on(kind.family)
    return needed is not None and needed.fits_in(kind.capacity)


def why_unplaceable(catalog: Catalog, spec: TaskSpec) -> str:
    """The reason to give for a task without a reservation price: the nearest miss, in numbers."""
    default = spec.demand.default or spec.demand.per_family[0][1]
    if not len(catalog):
        return f"needs {default}; catalog {catalog.name!r} has no instance type at all"
    largest = Resources(
        *(max(column) for column in zip(*(k.capacity for k in catalog), strict=True))
    )
    return (
        f"needs {default}; no instance type of catalog {catalog.name!r} holds that "
        f"(largest of each resource: {largest})"
    )


def _reservation_price(catalog: Catalog, spec: TaskSpec) -> ReservationPrice | None:
    hosts = [kind for kind in catalog if fits_alone(spec, kind) and _speed(spec, kind.family) > 0]
    if not hosts:
        return None
    speeds = {family: _speed(spec, family) for family in catalog.families}
    if len({speeds[kind.family] for kind in hosts}) == 1:
        best = min(hosts, key=lambda kind: (kind.hourly_micros, kind.name))
    else:
        best = min(hosts, key=lambda kind: (kind.hourly_micros / speeds[kind.family], kind.name))
    by_family = {
        family: round(best.hourly_micros * speed / speeds[best.family])
        if speed != speeds[best.family]
        else best.hourly_micros
        for family, speed in speeds.items()
        if spec.demand.on(family) is not None
    }
    return ReservationPrice(best.hourly_micros, best, by_family)


def _speed(spec: TaskSpec, family: str) -> Fraction:
    """Relative speed on a family: 1 where nothing is stated. Exact, so that ties are ties."""
    throughput = spec.throughput.on(family)
    return _UNSTATED_SPEED if throughput is None else Fraction(throughput)


_UNSTATED_SPEED = Fraction(1)
