"""The horizon D-hat: how long a configuration is expected to last before the next full one.

Arrivals and completions ("events") come at rate lambda, each triggers a full reconfiguration with
probability p, so the mean time to the next one is D = -1 / (lambda ln(1 - p)).

The edges, stated once:
- p is estimated as (full reconfigurations + 1) / (events + 2), so that it is never 0 or 1 for want
  of data and starts at one half;
- p = 1 (every event triggers one): D = 0, savings count for nothing and the cheaper move wins;
- p = 0 or lambda = 0 (nothing will ever happen): D is infinite, any lasting saving wins.
"""

from __future__ import annotations

import math

from eva.model.snapshot import EventStatistics
from eva.model.units import MS_PER_HOUR


def horizon_hours(events_per_hour: float, full_probability: float) -> float:
    """D-hat for given rate and probability; 0 and infinity at the edges."""
    if full_probability >= 1:
        return 0.0
    if full_probability <= 0 or events_per_hour <= 0:
        return math.inf
    return -1.0 / (events_per_hour * math.log1p(-full_probability))


def estimated_horizon_hours(statistics: EventStatistics) -> float:
    """D-hat from what has been counted so far; infinite before the first event."""
    if statistics.events == 0 or statistics.observed_ms <= 0:
        return math.inf
    rate = statistics.events * MS_PER_HOUR / statistics.observed_ms
    full = min(statistics.full_reconfigurations, statistics.events)
    return horizon_hours(rate, (full + 1) / (statistics.events + 2))
