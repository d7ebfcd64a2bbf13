"""The Offer: what can be rented just now, and for how much.

A type that the cloud refused is set aside for a while, and a plan is asked for at once. So it is
the planner that picks the next-best type, for exactly the tasks that are waiting, knowing all that
it knows. Naming substitutes in the launch would be quicker by one plan, but the cloud would then
choose without knowing the tasks, and instances would come that nobody planned.

Prices change by `CatalogChanged`. Instances keep the price at which they were launched; plans are
carried out at the prices of now. Snapshots share a catalog as long as nothing changes, because
prices are worked out once per catalog.
"""

from __future__ import annotations

from eva.control.settings import ControllerSettings
from eva.control.state import State
from eva.model.catalog import Catalog, InstanceType

_NAMED = 3  # of the types that are set aside, in words


class Offer:
    def __init__(self, state: State, catalog: Catalog, settings: ControllerSettings) -> None:
        self._state = state
        self._first = catalog
        self._settings = settings
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

    def at(self, now_ms: int) -> Catalog:
        """What a plan may rent: the price list without what is set aside."""
        names = frozenset(n for n, until_ms in self._state.set_aside.items() if until_ms > now_ms)
        catalog = self.catalog
        if not names:
            return catalog
        if self._without is None or self._without[:2] != (catalog, names):
            self._without = (catalog, names, _without(catalog, names))
        return self._without[2]

    def current(self, kind: InstanceType, now_ms: int) -> InstanceType | None:
        """A planned type as it is offered now; None if it is not."""
        return self.at(now_ms).get(kind.name)


def _without(catalog: Catalog, names: frozenset[str]) -> Catalog:
    few = ", ".join(sorted(names)) if len(names) <= _NAMED else f"{len(names)} types"
    left = (kind for kind in catalog if kind.name not in names)
    return catalog.offering(left, f"{catalog.name} without {few}, refused by the cloud just now")
