"""How often instances on spot were taken back, by family: what the risk in their price rests on.

Counted is the time in which instances were ready, and how many of them the cloud announced to take
back, or took unannounced. What never got ready was not interrupted but refused, late; and what went
silent, or was being terminated anyway, proves nothing. Times are those of the events, so that the
journal folds into the same counts.

Clouds change, so what was seen counts half as much after so many hours of a family's instances
(`MEMORY_MS`), and with every day on which there was none.
"""

from __future__ import annotations

from dataclasses import replace

from eva.control.lifecycle import InstanceState
from eva.control.state import Experience, Instance, State
from eva.model.units import MS_PER_HOUR
from eva.scheduling.spot import Rate, SpotRisk

MEMORY_MS = 2_000 * MS_PER_HOUR


class Interruptions:
    def __init__(self, state: State, risk: SpotRisk) -> None:
        self._state = state
        self._risk = risk

    def ready(self, instance: Instance, now_ms: int) -> None:
        self._count(instance, now_ms, running=1)

    def gone(self, instance: Instance, now_ms: int) -> None:
        if instance.ready_ms is not None:
            self._count(instance, now_ms, running=-1)

    def taken_back(self, instance: Instance, now_ms: int) -> None:
        """The cloud wants it back, or has it back; each instance counts once."""
        leaving = instance.doomed or instance.state is InstanceState.TERMINATING
        if instance.ready_ms is not None and not leaving:
            self._count(instance, now_ms, interruptions=1)

    def rate(self, family: str, now_ms: int) -> Rate:
        """What is to be expected of a family on spot."""
        seen = self._state.spot.get(family, Experience()).at(now_ms)
        return self._risk.rate(Rate(seen.interruptions, seen.up_ms))

    def rates(self, now_ms: int) -> tuple[tuple[str, Rate], ...]:
        """Of all families of which something is known; equal for as long as no price changes."""
        return tuple((family, self.rate(family, now_ms)) for family in self._state.spot)

    def _count(
        self, instance: Instance, now_ms: int, running: int = 0, interruptions: int = 0
    ) -> None:
        if not instance.type.spot:
            return
        family, seen = instance.type.family, self._state.spot
        before = seen.get(family, Experience(since_ms=now_ms)).at(now_ms)
        forgotten = before.up_ms > MEMORY_MS  # halved; it never gets far above
        seen[family] = replace(
            before,
            interruptions=(before.interruptions >> forgotten) + interruptions,
            up_ms=before.up_ms >> forgotten,
            running=before.running + running,
            since_ms=now_ms,
        )
