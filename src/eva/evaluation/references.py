"""What a bill is measured against: hosting everything alone, and what no scheduler could beat.

`lower_bound_micros` (A of the simulator's rules) is the sum over jobs of standalone duration times
the dual price of the demand in the pattern program over the whole trace: without interference and
delays no schedule costs less. `slowed_bound_micros` (B) counts tasks at the speed at which they
truly run beside each other: no schedule that suffers the interference costs less.

`floor_micros` is no bound but a yardstick: B's program over the tasks that would be active at each
moment if every job started on arrival and ran at full speed. It looks at so many moments, with the
patterns that were found to pay at some of them.

Where jobs allow spot, bounds and floor are those of a cloud that never takes anything back; hosting
everything alone is on demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from eva.evaluation.no_packing import no_packing_micros
from eva.model.catalog import Catalog
from eva.model.jobs import TaskSpec
from eva.model.units import MICROS_PER_USD, MS_PER_HOUR, MS_PER_SECOND
from eva.scheduling.exact.bounds import (
    Bound,
    PricingEffort,
    generate,
    lower_bound,
    starting_columns,
    work_of,
)
from eva.scheduling.exact.lp import Ints, PoolLp, Sense
from eva.scheduling.exact.patterns import Need, Pool, Shapes, list_patterns, shapes_of
from eva.scheduling.spot import Rate, SpotRisk, with_spot
from eva.simulator.settings import SimulationSettings
from eva.traces.interference import Interference
from eva.traces.trace import Trace

_MOMENTS_PRICED = 40  # moments at which new patterns are looked for
_MOMENTS = 2_000  # moments at which the program is solved
_NO_RISK = SpotRisk(Rate(0, MS_PER_HOUR), 0)
_WORK_UNIT = 1_000_000  # `work_of` counts in millionths of a task
_EFFORT = PricingEffort(
    rounds=10, partial_sets=200, most_partial_sets=200, columns_per_type=4, gap=0.003
)


class Bounds(StrEnum):
    """How many references are worth waiting for."""

    NONE = "none"
    QUICK = "quick"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class References:
    """Each over the whole trace; None where it was not asked for."""

    no_packing_micros: int
    lower_bound_micros: int | None = None
    slowed_bound_micros: int | None = None
    floor_micros: int | None = None


def references_of(
    trace: Trace, catalog: Catalog, settings: SimulationSettings, bounds: Bounds
) -> References:
    alone = References(no_packing_micros(trace, catalog, settings))
    if bounds is Bounds.NONE:
        return alone
    needs, catalog = _needs(trace), _offered(trace, catalog)
    unslowed = _over_time(lower_bound(catalog, needs))
    plain = replace(alone, lower_bound_micros=unslowed)
    if bounds is Bounds.QUICK:
        return plain
    truth = settings.interference
    slowed = _over_time(lower_bound(catalog, needs, truth.pair))
    return replace(
        plain,  # a bound without interference is one with it: B is never the weaker of the two
        slowed_bound_micros=max(slowed, unslowed),
        floor_micros=practical_floor_micros(trace, catalog, truth),
    )


def practical_floor_micros(trace: Trace, catalog: Catalog, truth: Interference) -> int:
    needs = _needs(trace)
    shapes = shapes_of(catalog, needs, truth.pair)
    shape_of = {need.spec: n for need, n in zip(needs, shapes.of_need, strict=True)}
    changes = _changes(trace, shape_of)
    pool = _patterns_over_time(shapes, changes)
    work = work_of(pool.sets, shapes.slowdown) / _WORK_UNIT
    costs = pool.hourly_usd
    start = starting_columns(costs, work, shapes.cheapest / MICROS_PER_USD)
    program = PoolLp(costs, work, np.zeros(len(shapes)), Sense.COVER, start)
    spent_usd_ms, hourly_usd, before_ms = 0.0, 0.0, 0
    for at_ms, active in _moments(changes, len(shapes), _MOMENTS):
        spent_usd_ms += hourly_usd * (at_ms - before_ms)
        program.change_need(active.astype(np.float64))
        hourly_usd, before_ms = program.solve().objective, at_ms
    return round(spent_usd_ms / MS_PER_HOUR * MICROS_PER_USD)


def _patterns_over_time(shapes: Shapes, changes: Sequence[_Change]) -> Pool:
    """Every pattern that can matter, or those that pay at some moments of the trace."""
    pool = list_patterns(shapes)
    if pool.complete:
        return pool
    for _, active in _moments(changes, len(shapes), _MOMENTS_PRICED):
        if active.any():
            pool, _ = generate(replace(shapes, amounts=active), pool, _EFFORT)
    return pool


def _offered(trace: Trace, catalog: Catalog) -> Catalog:
    """What the jobs of a trace may run on, at what is billed for it."""
    allowed = any(job.spec.spot for job in trace.jobs)
    return with_spot(catalog, _NO_RISK, {}) if allowed else catalog


_Change = tuple[int, int, int]  # when, which shape, one more or one less


def _changes(trace: Trace, shape_of: dict[TaskSpec, int]) -> list[_Change]:
    changes: list[_Change] = []
    for job in trace.jobs:
        ended_ms = job.arrival_ms + _work_ms(job.total_iterations, job.throughput_per_s)
        for spec in job.spec.tasks:
            number = shape_of[spec]
            changes += [(job.arrival_ms, number, 1), (ended_ms, number, -1)]
    return sorted(changes)


def _moments(changes: Sequence[_Change], shapes: int, most: int) -> list[tuple[int, Ints]]:
    """At most about `most` moments, evenly among the changes, the last of all among them."""
    active = np.zeros(shapes, dtype=np.int64)
    stride = -(-len(changes) // most)
    found: list[tuple[int, Ints]] = []
    for place, (at_ms, number, difference) in enumerate(changes, 1):
        active[number] += difference
        if place % stride == 0 or place == len(changes):
            found.append((at_ms, active.copy()))
    return found


def _needs(trace: Trace) -> list[Need]:
    """The task-milliseconds that every kind of task takes at full speed."""
    amounts: dict[TaskSpec, list[int]] = {}
    for job in trace.jobs:
        work_ms = _work_ms(job.total_iterations, job.throughput_per_s)
        for spec in job.spec.tasks:
            amounts.setdefault(spec, []).append(work_ms)
    return [Need(spec, sum(works), len(works)) for spec, works in amounts.items()]


def _work_ms(iterations: float, throughput_per_s: float) -> int:
    return int(iterations / throughput_per_s * MS_PER_SECOND)


def _over_time(bound: Bound) -> int:
    """A bound whose amounts were task-milliseconds, in micro-dollars, rounded down."""
    return bound.hourly_micros // MS_PER_HOUR
