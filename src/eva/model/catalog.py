"""The instance types that can be rented."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from eva.model.resources import Resources
from eva.model.spot import is_spot, on_demand


@dataclass(frozen=True, slots=True)
class InstanceDelays:
    """How long an instance takes to come and to go.

    Billing starts when the instance is acquired and ends `terminate_ms` after termination is
    asked for; tasks can start once it is registered.
    """

    acquire_ms: int = 0
    start_worker_ms: int = 0
    register_worker_ms: int = 0
    terminate_ms: int = 0

    @property
    def setup_ms(self) -> int:
        """Time that is billed before the first task can start."""
        return self.start_worker_ms + self.register_worker_ms


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One thing on the price list. `hourly_micros` is what an hour of it costs, all told.

    On demand that is what is paid. On spot it is more than that by `risk_micros`, what is lost per
    hour by interruptions as far as one can tell: every decision goes by the whole, the bill by
    what is left without the risk (`billed_micros`). `spot_hourly_micros` is what the same machine
    costs on spot, where that is known.
    """

    name: str
    family: str
    capacity: Resources
    hourly_micros: int
    delays: InstanceDelays = field(default_factory=InstanceDelays)
    spot_hourly_micros: int | None = None
    price_as_of: str = ""
    risk_micros: int = 0

    @property
    def billed_micros(self) -> int:
        """What is paid for an hour."""
        return self.hourly_micros - self.risk_micros

    @property
    def spot(self) -> bool:
        return is_spot(self.name)

    @property
    def machine(self) -> InstanceType:
        """What a cloud is asked for: to it spot is a way to rent a type, and no type."""
        if not self.spot:
            return self
        return replace(self, name=on_demand(self.name), family=on_demand(self.family))

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True, eq=False)
class Catalog:
    """Instance types, dearest first: the order in which Algorithm 1 tries them.

    Ties in price go to the larger capacity, then to the name, so that the order is total. A
    catalog is compared by identity: prices are computed once per catalog and kept under it.

    `also_families` are those of types that cannot be had just now, though instances of them may
    still be there and their tasks have to be valued.
    """

    name: str
    types: tuple[InstanceType, ...]
    also_families: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ordered = sorted(
            self.types,
            key=lambda kind: (-kind.hourly_micros, tuple(-x for x in kind.capacity), kind.name),
        )
        object.__setattr__(self, "types", tuple(ordered))
        if len({kind.name for kind in ordered}) != len(ordered):
            raise ValueError(f"catalog {self.name!r} names an instance type twice")

    def __iter__(self) -> Iterator[InstanceType]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)

    def get(self, name: str) -> InstanceType | None:
        return next((kind for kind in self.types if kind.name == name), None)

    @cached_property
    def families(self) -> tuple[str, ...]:
        return tuple(sorted({*self.also_families, *(kind.family for kind in self.types)}))

    def cheapest(self, family: str, needed: Resources) -> InstanceType | None:
        """The cheapest type of a family that has room for `needed`."""
        return next((kind for kind in self._rising[family] if needed.fits_in(kind.capacity)), None)

    @cached_property
    def _rising(self) -> dict[str, list[InstanceType]]:
        return {
            family: [kind for kind in reversed(self.types) if kind.family == family]
            for family in self.families
        }

    def with_types(self, types: Iterable[InstanceType]) -> Catalog:
        return Catalog(self.name, tuple(types))

    def offering(self, types: Iterable[InstanceType], name: str | None = None) -> Catalog:
        """What is on offer now instead. Families are remembered, also those without a type."""
        return Catalog(name or self.name, tuple(types), self.families)
