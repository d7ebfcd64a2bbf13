"""What goes wrong, drawn from one seeded generator, on occasions that come in a stated order."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from eva.control.events import CatalogChanged
from eva.model.catalog import Catalog
from eva.simulator.settings import FaultSettings

_CHEAPEST, _DEAREST = 0.5, 2.0
_UNFIT = 0.3


class Faults:
    """Every question is asked once per occasion. Nothing is drawn for what cannot happen."""

    def __init__(self, settings: FaultSettings) -> None:
        self.settings = settings
        self._random = Random(f"faults {settings.seed}")  # noqa: S311  # chance, not secrets

    def strikes(self, probability: float) -> bool:
        return probability > 0 and self._random.random() < probability

    def soon_ms(self, within_ms: int | None = None) -> int:
        """When something happens that may happen any time within a window."""
        return self._random.randrange(1, max(2, within_ms or self.settings.within_ms))

    def repriced(self, catalog: Catalog) -> CatalogChanged:
        """The catalog at other prices, which at times are none to save money by."""
        types = tuple(
            replace(kind, hourly_micros=round(kind.hourly_micros * self._factor()))
            for kind in catalog
        )
        return CatalogChanged(types, "they are old" if self.strikes(_UNFIT) else "")

    def _factor(self) -> float:
        return self._random.uniform(_CHEAPEST, _DEAREST)

    def lateness_ms(self) -> int:
        return self._random.randrange(1, max(2, self.settings.late_ms))
