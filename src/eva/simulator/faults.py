"""What goes wrong, drawn from one seeded generator, on occasions that come in a stated order."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from eva.control.events import CatalogChanged
from eva.model.catalog import Catalog, InstanceType
from eva.model.units import MS_PER_HOUR
from eva.simulator.settings import FaultSettings

_CHEAPEST, _DEAREST = 0.5, 2.0
_UNFIT = 0.3
_UNKNOWN = 0.2


class Faults:
    """Every question is asked once per occasion. Nothing is drawn for what cannot happen."""

    def __init__(self, settings: FaultSettings) -> None:
        self.settings = settings
        self._random = Random(f"faults {settings.seed}")  # noqa: S311  # chance, not secrets
        self._spot = Random(f"spot {settings.seed}")  # noqa: S311

    def strikes(self, probability: float) -> bool:
        return probability > 0 and self._random.random() < probability

    def soon_ms(self, within_ms: int | None = None) -> int:
        """When something happens that may happen any time within a window."""
        return self._random.randrange(1, max(2, within_ms or self.settings.within_ms))

    def until_interrupted_ms(self) -> int:
        """How long an instance on spot is left alone: no moment is likelier than another."""
        return 1 + round(MS_PER_HOUR * self._spot.expovariate(self.settings.interruptions_per_hour))

    def repriced(self, catalog: Catalog) -> CatalogChanged:
        """The catalog at other prices, which at times are none to save money by."""
        types = tuple(
            replace(
                kind,
                hourly_micros=round(kind.hourly_micros * self._factor()),
                spot_hourly_micros=self._spot_price(kind),
            )
            for kind in catalog
        )
        return CatalogChanged(types, "they are old" if self.strikes(_UNFIT) else "")

    def _spot_price(self, kind: InstanceType) -> int | None:
        """Another one, or none that is known, where there is one at all."""
        if kind.spot_hourly_micros is None or self.strikes(_UNKNOWN):
            return None
        return round(kind.spot_hourly_micros * self._factor())

    def _factor(self) -> float:
        return self._random.uniform(_CHEAPEST, _DEAREST)

    def lateness_ms(self) -> int:
        return self._random.randrange(1, max(2, self.settings.late_ms))
