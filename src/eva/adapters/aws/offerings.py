"""Where to try next: zones of the wanted type first, then the next-best types.

An offering that was refused is set aside for a while, so that a cluster short of one type does not
spend its calls on hearing so again. Nothing is kept on disk: after a restart all are tried anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from eva.adapters.aws.failures import ApiError, Verdict
from eva.model.errors import EvaError
from eva.model.units import format_duration
from eva.ports.cloud import (
    CloudCapacityError,
    CloudQuotaError,
    LaunchIntent,
    UnsupportedTypeError,
)

# What to tell of several refusals: the one that waiting helps soonest.
_HOPE: tuple[type[EvaError], ...] = (CloudCapacityError, CloudQuotaError, UnsupportedTypeError)


@dataclass(frozen=True, slots=True)
class Offering:
    type: str
    zone: str
    spot: bool

    def __str__(self) -> str:
        return f"{self.type} in {self.zone}{' (spot)' if self.spot else ''}"


@dataclass(frozen=True, slots=True)
class _SetAside:
    until_ms: int
    refusal: ApiError


class Offerings:
    def __init__(self, zones: Sequence[str], set_aside_ms: int, clock: Callable[[], int]) -> None:
        self._zones = tuple(zones)
        self._set_aside_ms = set_aside_ms
        self._clock = clock
        self._aside: dict[Offering, _SetAside] = {}

    def of(self, intent: LaunchIntent) -> Iterator[Offering]:
        """Those to try, best first; what is refused on the way changes what follows."""
        for offering in self._all(intent):
            if self._refused(offering) is None:
                yield offering

    def set_aside(self, offering: Offering, refusal: ApiError) -> None:
        everywhere = refusal.verdict is Verdict.NOT_THIS_TYPE
        until_ms = self._clock() + self._set_aside_ms
        for zone in {offering.zone, *self._zones} if everywhere else {offering.zone}:
            self._aside[replace(offering, zone=zone)] = _SetAside(until_ms, refusal)

    def why_none(self, intent: LaunchIntent) -> EvaError:
        """The error for an intent that no offering is left for."""
        refusals = [(each, self._refused(each)) for each in self._all(intent)]
        offering, aside = min(
            ((each, aside) for each, aside in refusals if aside is not None),
            key=lambda pair: _HOPE.index(pair[1].refusal.meaning.error),
        )
        wait = format_duration(max(0, aside.until_ms - self._clock()))
        return aside.refusal.meaning.error(
            f"{intent.instance}: none of {len(refusals)} offerings is to be had; {offering}: "
            f"{aside.refusal}. {aside.refusal.meaning.remedy}; tried again after {wait}"
        )

    def _all(self, intent: LaunchIntent) -> Iterator[Offering]:
        zones = dict.fromkeys((*intent.zones, *self._zones))
        for name in dict.fromkeys(kind.name for kind in (intent.type, *intent.alternatives)):
            for zone in zones:
                yield Offering(name, zone, intent.spot)

    def _refused(self, offering: Offering) -> _SetAside | None:
        aside = self._aside.get(offering)
        if aside is not None and aside.until_ms <= self._clock():
            del self._aside[offering]
            return None
        return aside
