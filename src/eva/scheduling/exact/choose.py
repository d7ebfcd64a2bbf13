"""From a pool of sets to whole instances, completed by Algorithm 1: what both exact policies share.

An answer is held from the first moment (Algorithm 1 on everything) and only ever replaced by a
better one. Nothing here looks at a clock: two dives over a few thousand columns take about 15 ms
for ten classes, the same work every time, and the plan depends on the snapshot alone. Only a proof
has a limit in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from eva.model.units import MICROS_PER_USD
from eva.scheduling.exact.lp import Floats, Ints, PoolLp, Sense
from eva.scheduling.exact.rounding import Rounded, dive
from eva.scheduling.packing import Pattern
from eva.scheduling.valuation import QUANTA_PER_MICRO

# The relaxation has many optima, since a large type often is several small ones in capacity and
# price. The second dive leans towards the small ones, which leave less to round.
LEANINGS = (0.0, 1e-4)

# A state may still end a little below what its relaxation allows: whatever was covered twice is
# left out when tasks are named, and an instance that this empties halfway becomes a smaller one.
_HOPE = 0.02
_ENOUGH = 1e-6  # of the bound, relatively

Finish = Callable[[Rounded], list[Pattern]]
Objective = Callable[[Sequence[Pattern]], int]  # micro-dollars, as in the columns; minimised


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What the dive works on: the objective per line (minimised), and the price to lean by."""

    costs: Floats
    prices: Floats
    sets: Ints
    need: Ints
    sense: Sense
    start: Ints


def best_of(
    columns: Columns,
    incumbent: list[Pattern],
    finish: Finish,
    objective: Objective,
    bound: int,
    leanings: Iterable[float] = LEANINGS,
) -> list[Pattern]:
    """The best of `incumbent` and everything that the dives come by.

    A dive ends as soon as nothing below it is likely to be better than what is held, and all of
    them end when what is held reaches the bound.
    """
    best, reached = incumbent, objective(incumbent)
    if not len(columns.costs):
        return best
    sets = columns.sets.astype(np.float64)
    dearest = float(columns.prices.max())
    for leaning in leanings:
        if reached <= bound + _ENOUGH * abs(bound):
            break
        leaned = columns.costs + leaning * columns.prices * columns.prices / dearest
        need = columns.need.astype(np.float64)
        lp = PoolLp(leaned, sets, need, columns.sense, columns.start)
        for state in dive(lp, leaned, columns.sets, columns.need):
            if state.at_least * MICROS_PER_USD >= reached + _HOPE * abs(reached):
                break
            candidate = finish(state)
            value = objective(candidate)
            if value < reached:
                best, reached = candidate, value
    return best


def cost_of(patterns: Iterable[Pattern]) -> int:
    return sum(pattern.copies * pattern.type.hourly_micros for pattern in patterns)


def net_value_of(patterns: Iterable[Pattern]) -> int:
    """Worth less cost, in quanta per hour."""
    return sum(
        pattern.copies * (pattern.value - pattern.type.hourly_micros * QUANTA_PER_MICRO)
        for pattern in patterns
    )
