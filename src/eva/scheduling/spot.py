"""Spot offerings: what the machines on the price list cost where the cloud may take them back.

An hour on spot costs its price and a share of what an interruption costs:

    risk = interruptions per hour x what the machine is worth x the time that one costs

That time is what it takes to acquire and set up another machine, and then to start again and make
up for the work since the last checkpoint (`lost_ms`). Meanwhile nothing of what its tasks are worth
gets done, and that is the price on demand: what the machine would cost if nobody could take it
away. The paper knows no spot; this is its reservation price with one more term, so a task is on
spot exactly where that is expected to be cheaper, and back on demand where it is not.

What is not counted: siblings of an interrupted task on other instances stand still too, so that
for a job of many tasks the risk is too low by their worth.

How often machines are taken back is believed first and learned then. The belief counts as so many
hours in which so many interruptions were seen (the mean of a Gamma-Poisson model); experience is
added to both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from eva.model.catalog import Catalog, InstanceType
from eva.model.spot import on_spot
from eva.model.units import MS_PER_HOUR, MS_PER_SECOND, cost_micros


@dataclass(frozen=True, slots=True)
class Rate:
    """So many interruptions in so long a time of one instance."""

    interruptions: int
    in_ms: int

    @property
    def per_hour(self) -> float:
        return self.interruptions * MS_PER_HOUR / self.in_ms


@dataclass(frozen=True, slots=True)
class SpotRisk:
    """What is believed of interruptions until more is known, and how long one of them costs.

    One in twenty hours is on the careful side of what AWS publishes, and weighs as much as twenty
    hours of one's own experience. Two minutes of notice are enough for most checkpoints; ten
    minutes for what is lost all the same leave room for those that they are not enough for.
    """

    believed: Rate = Rate(1, 20 * MS_PER_HOUR)
    lost_ms: int = 600 * MS_PER_SECOND

    @classmethod
    def believing(cls, per_hour: float) -> SpotRisk:
        """As many interruptions per hour, with the weight of one of them."""
        if not per_hour:
            return cls(Rate(0, cls().believed.in_ms))
        return cls(Rate(1, max(1, round(MS_PER_HOUR / per_hour))))

    def rate(self, seen: Rate) -> Rate:
        """Belief and experience together.

        Prices are worked out anew whenever this changes, so it changes in steps: with every
        interruption, and when the time has doubled at first, then grown by half or a third. In
        between it is too high rather than too low.
        """
        whole_ms = self.believed.in_ms + seen.in_ms
        return Rate(self.believed.interruptions + seen.interruptions, self._rounded_down(whole_ms))

    def _rounded_down(self, whole_ms: int) -> int:
        """To 1, 2, 3, 4, 6, 8, 12, 16, ... times what is believed of."""
        times = whole_ms // self.believed.in_ms
        small = max(0, times.bit_length() - 2)
        return (times >> small << small) * self.believed.in_ms

    def standstill_ms(self, kind: InstanceType) -> int:
        """For how long an interruption keeps the tasks of `kind` from getting on."""
        return kind.delays.acquire_ms + kind.delays.setup_ms + self.lost_ms

    def micros(self, kind: InstanceType, rate: Rate) -> int:
        """The risk of an hour of `kind`, a type on demand, were it on spot."""
        one = cost_micros(kind.hourly_micros, self.standstill_ms(kind))
        return (2 * one * rate.interruptions * MS_PER_HOUR + rate.in_ms) // (2 * rate.in_ms)


def with_spot(catalog: Catalog, risk: SpotRisk, rates: Mapping[str, Rate]) -> Catalog:
    """The catalog with spot offerings beside what it has on demand; `rates` are by spot family.

    What has no price on spot is not offered there. The spot families are remembered all the same,
    since instances may still be up that were rented at a price which is not known any more.
    """
    believed = risk.rate(Rate(0, 0))
    offerings = [
        offering
        for kind in catalog
        if (offering := _offering(kind, risk, rates.get(on_spot(kind.family), believed)))
    ]
    families = (*catalog.families, *map(on_spot, catalog.families))
    return Catalog(catalog.name, (*catalog.types, *offerings), families)


def _offering(kind: InstanceType, risk: SpotRisk, rate: Rate) -> InstanceType | None:
    if not kind.spot_hourly_micros:
        return None
    risk_micros = risk.micros(kind, rate)
    return replace(
        kind,
        name=on_spot(kind.name),
        family=on_spot(kind.family),
        hourly_micros=kind.spot_hourly_micros + risk_micros,
        spot_hourly_micros=None,
        risk_micros=risk_micros,
    )


def at_risk(kind: InstanceType, risk_micros: int) -> InstanceType:
    """A type on spot with another risk and the same bill."""
    if risk_micros == kind.risk_micros:
        return kind
    return replace(kind, hourly_micros=kind.billed_micros + risk_micros, risk_micros=risk_micros)
