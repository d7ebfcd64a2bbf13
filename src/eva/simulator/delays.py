"""Delays as the settings have them: as given, scaled, or scaled by a factor drawn from a range."""

from __future__ import annotations

from random import Random

from eva.simulator.settings import DelaySettings


class Delays:
    def __init__(self, settings: DelaySettings) -> None:
        self._settings = settings
        self._random = Random(f"delays {settings.seed}")  # noqa: S311  # chance, not secrets

    def task(self, delay_ms: int) -> int:
        return self._shaped(delay_ms, self._settings.task_scale)

    def instance(self, delay_ms: int) -> int:
        return self._shaped(delay_ms, self._settings.instance_scale)

    def _shaped(self, delay_ms: int, scale: float) -> int:
        if self._settings.jitter is not None:
            scale *= self._random.uniform(*self._settings.jitter)
        return delay_ms if scale == 1.0 else round(delay_ms * scale)
