"""The Offer: what can be rented just now, and for how much.

A type that the cloud refused is set aside for a while, and a plan is asked for at once. So it is
the planner that picks the next-best type, for exactly the tasks that are waiting, knowing all that
it knows. Naming substitutes in the launch would be quicker by one plan, but the cloud would then
choose without knowing the tasks, and instances would come that nobody planned.

Prices change by `CatalogChanged`. Instances keep the price at which they were launched; plans are
carried out at the prices of now. Snapshots share a catalog as long as nothing changes, because
prices are worked out once per catalog.

Spot offerings are made here from what the price list says of spot, with the risk as far as it is
known. They are on offer while some job allows spot, and cost nobody anything while none does. The
risk of what runs goes with the estimate, unlike its price: tasks that would be better off on demand
by now should not stay because the future once looked brighter.
"""

from __future__ import annotations

from dataclasses import dataclass

from eva.control.interruptions import Interruptions
from eva.control.settings import ControllerSettings
from eva.control.state import State
from eva.model.catalog import Catalog, InstanceType
from eva.model.spot import on_demand
from eva.scheduling.spot import Rate, at_risk, with_spot

_NAMED = 3  # of the types that are set aside, in words


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of interruptions of one type: `machine` is the same on demand."""

    machine: InstanceType
    rate: Rate
    standstill_ms: int
    micros: int  # the risk of an hour


class Offer:
    def __init__(
        self,
        state: State,
        catalog: Catalog,
        settings: ControllerSettings,
        interruptions: Interruptions,
    ) -> None:
        self._state = state
        self._first = catalog
        self._settings = settings
        self._interruptions = interruptions
        self._with: tuple[Catalog, tuple[tuple[str, Rate], ...], Catalog] | None = None
        self._without: tuple[Catalog, frozenset[str], Catalog] | None = None

    @property
    def catalog(self) -> Catalog:
        """Everything on the price list, set aside or not."""
        return self._first if self._state.catalog is None else self._state.catalog

    def change(self, types: tuple[InstanceType, ...], unfit: str) -> None:
        state = self._state
        state.catalog = self.catalog.offering(types)
        state.dirty_tasks = state.dirty_tasks or state.prices_unfit != unfit
        state.prices_unfit = unfit

    def set_aside(self, kind: InstanceType, now_ms: int) -> None:
        self._state.set_aside[kind.name] = now_ms + self._settings.set_aside_ms

    def forget_expired(self, now_ms: int) -> None:
        aside = self._state.set_aside
        for name in [name for name, until_ms in aside.items() if until_ms <= now_ms]:
            del aside[name]

    def at(self, now_ms: int, *, spot: bool = False) -> Catalog:
        """What a plan may rent: the price list without what is set aside.

        On spot too if a job allows that, or if it is asked what would be if one did (`spot`).
        """
        names = frozenset(n for n, until_ms in self._state.set_aside.items() if until_ms > now_ms)
        catalog = self._with_spot(now_ms) if spot or self._state.on_spot else self.catalog
        if not names:
            return catalog
        if self._without is None or self._without[:2] != (catalog, names):
            self._without = (catalog, names, _without(catalog, names))
        return self._without[2]

    def current(self, kind: InstanceType, now_ms: int) -> InstanceType | None:
        """A planned type as it is offered now; None if it is not."""
        return self.at(now_ms).get(kind.name)

    def at_risk(self, kind: InstanceType, now_ms: int) -> InstanceType:
        """The type of an instance that is there, at the risk as it is seen now."""
        expected = self.expected(kind, now_ms)
        return kind if expected is None else at_risk(kind, expected.micros)

    def expected(self, kind: InstanceType, now_ms: int) -> Expected | None:
        """None for what is not on spot, or not on the price list any more."""
        machine = self.catalog.get(on_demand(kind.name)) if kind.spot else None
        if machine is None:
            return None
        risk, rate = self._settings.spot_risk, self._interruptions.rate(kind.family, now_ms)
        return Expected(machine, rate, risk.standstill_ms(machine), risk.micros(machine, rate))

    def _with_spot(self, now_ms: int) -> Catalog:
        catalog, rates = self.catalog, self._interruptions.rates(now_ms)
        if self._with is None or self._with[:2] != (catalog, rates):
            made = with_spot(catalog, self._settings.spot_risk, dict(rates))
            self._with = (catalog, rates, made)
        return self._with[2]


def _without(catalog: Catalog, names: frozenset[str]) -> Catalog:
    few = ", ".join(sorted(names)) if len(names) <= _NAMED else f"{len(names)} types"
    left = (kind for kind in catalog if kind.name not in names)
    return catalog.offering(left, f"{catalog.name} without {few}, refused by the cloud just now")
