"""What goes wrong, drawn from one seeded generator, on occasions that come in a stated order."""

from __future__ import annotations

from random import Random

from eva.simulator.settings import FaultSettings


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

    def lateness_ms(self) -> int:
        return self._random.randrange(1, max(2, self.settings.late_ms))
