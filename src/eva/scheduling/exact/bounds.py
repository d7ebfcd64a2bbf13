"""Lower bounds on what hosting tasks must cost, with a price per task that proves them.

The bound is the linear relaxation of the pattern formulation, taken on its dual side: an hourly
price for each kind of task such that no instance type can hold tasks priced at more than itself.
Whatever the configuration, its instances then cost at least the sum of their tasks' prices.

The solver's prices are only a proposal. They are rounded down to whole micro-dollars and checked
against every pattern in integers; if one is overpriced, all prices are lowered until none is
(Farley's bound). Where patterns are too many to list, the check is a search that never
underestimates, so stopping early weakens the bound and never makes it false.

With a pairwise throughput, tasks are counted at the speed they would really run at: no schedule
that suffers the interference can do the same work for less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from eva.model.catalog import Catalog
from eva.model.units import MICROS_PER_USD
from eva.scheduling.exact.lp import Floats, Ints, PoolLp, Sense, SetLp, Solution
from eva.scheduling.exact.patterns import (
    Need,
    PairThroughput,
    Pool,
    Shapes,
    joined,
    list_patterns,
    pool_of,
    rates_by_family,
    shapes_of,
)
from eva.scheduling.exact.search import Slowdown, search
from eva.scheduling.task_classes import TaskClass

_WORK_SCALE = 1_000_000  # work done by a slowed task, in integers
_SLACK = 1e-9  # relative error that the search's own sums may carry


@dataclass(frozen=True, slots=True)
class PricingEffort:
    """How hard to look for patterns when they are too many to list."""

    rounds: int = 80
    partial_sets: int = 1_000
    most_partial_sets: int = 16_000  # where fewer find nothing and the bound is not close yet
    columns_per_type: int = 8
    gap: float = 1e-5  # stop when the bound is this close to the relaxation, relatively


@dataclass(frozen=True, slots=True)
class Bound:
    """No configuration costs less than `hourly_micros` per hour.

    `duals_micros` has one price per need, aligned with what was asked: the proof, and each
    task's share of the bound. Needs that fit no instance type have price 0.
    """

    hourly_micros: int
    duals_micros: tuple[int, ...]


def needs_of(classes: Iterable[TaskClass]) -> list[Need]:
    return [Need(group.spec, len(group), len(group)) for group in classes]


def lower_bound(
    catalog: Catalog,
    needs: Sequence[Need],
    throughput: PairThroughput | None = None,
    effort: PricingEffort = PricingEffort(),
) -> Bound:
    """What hosting `needs` costs at the very least, in micro-dollars per hour.

    With amounts in task-milliseconds instead of tasks, the result is micro-dollars per hour times
    milliseconds: the same bound, over time. `throughput(a, b)` is the speed of `a` beside `b`.
    """
    shapes = shapes_of(catalog, needs, throughput)
    pool = list_patterns(shapes)
    if not pool.complete:
        known = None if throughput is None else _without_slowdown(catalog, needs, shapes, effort)
        prices = generate(shapes, pool, effort, known)[1]
    elif throughput is None:
        prices = proven_prices(relax(shapes, pool)[1].duals, shapes, pool)
    else:
        prices = _slowed_prices(shapes, pool)
    duals = tuple(0 if number < 0 else int(prices[number]) for number in shapes.of_need)
    total = sum(dual * need.amount for dual, need in zip(duals, needs, strict=True))
    return Bound(total, duals)


def relax(shapes: Shapes, pool: Pool) -> tuple[PoolLp, Solution]:
    """The covering relaxation over a pool without interference, solved."""
    sets = pool.sets.astype(np.float64)
    lp = PoolLp(
        pool.hourly_usd,
        sets,
        shapes.amounts.astype(np.float64),
        Sense.COVER,
        starting_columns(pool.hourly_usd, sets, shapes.cheapest / MICROS_PER_USD),
    )
    return lp, lp.solve()


def starting_columns(costs: Floats, sets: Floats, worth: Floats) -> Ints:
    """The patterns that look best at the price of hosting alone, and the best for each class."""
    with np.errstate(divide="ignore"):
        rating = costs / (sets @ worth)
    chosen = set(np.argsort(rating, kind="stable")[: 5 * sets.shape[1]].tolist())
    for row in range(sets.shape[1]):
        holding = np.flatnonzero(sets[:, row])
        if len(holding):
            chosen.add(int(holding[rating[holding].argmin()]))
    return np.array(sorted(chosen), dtype=np.int64)


def proven_prices(duals: Floats, shapes: Shapes, pool: Pool) -> Ints:
    """Whole micro-dollars per class at which no pattern of a complete pool exceeds its price."""
    return _safe_prices(duals, work_of(pool.sets, shapes.slowdown), pool.hourly_micros)


def _safe_prices(duals: Floats, work: Ints, costs: Ints) -> Ints:
    """The same for any lines of `work`, in 1/`_WORK_SCALE` tasks. Everything here is exact."""
    prices: Ints = np.floor(np.maximum(duals, 0.0) * MICROS_PER_USD).astype(np.int64)
    limit = costs * _WORK_SCALE
    worth = work @ prices
    over = np.flatnonzero(worth > limit)
    if len(over):
        worst = int(over[np.argmax(worth[over] / limit[over])])
        numerator, denominator = int(limit[worst]), int(worth[worst])
        prices = np.array([int(p) * numerator // denominator for p in prices], dtype=np.int64)
        while (work @ prices > limit).any():  # the worst was chosen in floats: take a hair more
            prices = np.maximum(prices - 1, 0)
    return prices


def work_of(sets: Ints, slowdown: Slowdown | None) -> Ints:
    """How much of each class a set gets done, in 1/`_WORK_SCALE` tasks, rounded up."""
    if slowdown is None:
        return sets * _WORK_SCALE
    workloads = len(slowdown.log_pairs)
    crowd = np.zeros((len(sets), workloads))
    for position, kind in enumerate(slowdown.workload):
        crowd[:, kind] += sets[:, position]
    log_speed = np.minimum(crowd @ slowdown.log_pairs.T - np.diagonal(slowdown.log_pairs), 0.0)
    speed = np.exp(log_speed)[:, slowdown.workload]
    work: Ints = np.ceil(sets * speed * (_WORK_SCALE * (1 + _SLACK))).astype(np.int64)
    return work


def generate(
    shapes: Shapes,
    start: Pool,
    effort: PricingEffort,
    known: Ints | None = None,
) -> tuple[Pool, Ints]:
    """Column generation from a pool: the patterns that paid, and the best safe prices found.

    The prices of each round are made safe by the ceiling of that round's own search. They are
    taken halfway between the best so far and what the solver proposes, whose own proposals jump
    about; where that finds nothing new, the proposal itself is tried, with a wider search.
    `known` are prices known to be safe; without any, those of plain resources are the start.
    """
    lp = SetLp(shapes.amounts.astype(np.float64), Sense.COVER)
    lp.add(start.hourly_usd, work_of(start.sets, shapes.slowdown) / _WORK_SCALE)
    pools = [start]
    best = resource_prices(shapes) if known is None else known
    pull, most = 0.5, effort.partial_sets
    for _ in range(effort.rounds):
        relaxation = lp.solve()
        proposal = np.clip(relaxation.duals, 0.0, shapes.cheapest / MICROS_PER_USD)
        duals = pull * best / MICROS_PER_USD + (1 - pull) * proposal
        fresh, overpriced = _price(shapes, duals, most, effort.columns_per_type)
        prices = np.floor(duals / overpriced * MICROS_PER_USD).astype(np.int64)
        before = float(best @ shapes.amounts)
        best = max(best, prices, key=lambda p: float(p @ shapes.amounts))
        improved = float(best @ shapes.amounts) > before + effort.gap * before
        reached = relaxation.objective * MICROS_PER_USD * (1 - effort.gap)
        if float(best @ shapes.amounts) >= reached:
            break
        if len(fresh):
            lp.add(fresh.hourly_usd, work_of(fresh.sets, shapes.slowdown) / _WORK_SCALE)
            pools.append(fresh)
            pull = 0.5
        elif pull and improved:  # nothing new halfway: go half of what is left of the way
            continue
        elif pull:
            pull = 0.0
        elif most < effort.most_partial_sets:
            most = min(effort.most_partial_sets, 4 * most)
        else:
            break
    return joined(pools), best


def resource_prices(shapes: Shapes) -> Ints:
    """Safe prices without any search: each task at the price of the resources that it takes.

    On every family the price of an instance is shared out among its resources so that no type is
    worth more than it costs; a task is then worth what it takes on the family where that is
    least. Of a few ways to share, the best is taken, one family after the other.
    """
    shares = np.array([w for w in np.ndindex(5, 5, 5) if sum(w) == 4], dtype=np.float64) / 4
    options = _worth_by_share(shapes, shares)
    chosen = {family: options[family][0] for family in options}
    for family in sorted(options):
        others = [chosen[name] for name in chosen if name != family]
        limit = np.minimum.reduce([shapes.cheapest / MICROS_PER_USD, *others])
        totals = np.minimum(options[family], limit) @ shapes.amounts
        chosen[family] = options[family][int(totals.argmax())]
    least = np.minimum.reduce([shapes.cheapest / MICROS_PER_USD, *chosen.values()])
    prices: Ints = np.floor(least * MICROS_PER_USD * (1 - _SLACK)).astype(np.int64)
    return prices


def _worth_by_share(shapes: Shapes, shares: Floats) -> dict[str, Floats]:
    """By family: a line per way to share, the worth of each class; infinite where it cannot run."""
    options: dict[str, Floats] = {}
    for family in {kind.family for kind in shapes.kinds}:
        pairs = zip(shapes.kinds, shapes.hosts, strict=True)
        of_family = [(kind, host) for kind, host in pairs if kind.family == family]
        prices = np.array([kind.hourly_micros for kind, _ in of_family]) / MICROS_PER_USD
        rooms = np.array([host.room for _, host in of_family], dtype=np.float64)
        with np.errstate(divide="ignore"):
            rates = np.where(rooms > 0, prices[:, None] / rooms, np.inf).min(axis=0)
        rates = np.where(np.isinf(rates), 0.0, rates)
        demands = of_family[0][1].demands
        runs = np.any([(demands <= host.room).all(axis=1) for _, host in of_family], axis=0)
        taken = np.where(runs[:, None], demands, 0)
        options[family] = np.where(runs, (shares * rates) @ taken.T, np.inf)
    return options


def _without_slowdown(
    catalog: Catalog, needs: Sequence[Need], shapes: Shapes, effort: PricingEffort
) -> Ints:
    """Prices that are safe without interference are so with it: nobody gets more done."""
    plain = lower_bound(catalog, needs, None, effort)
    prices = np.zeros(len(shapes), dtype=np.int64)
    for number, dual in zip(shapes.of_need, plain.duals_micros, strict=True):
        if number >= 0:
            prices[number] = dual
    return prices


def _slowed_prices(shapes: Shapes, pool: Pool) -> Ints:
    done = work_of(pool.sets, shapes.slowdown) / _WORK_SCALE
    start = starting_columns(pool.hourly_usd, done, shapes.cheapest / MICROS_PER_USD)
    need = shapes.amounts.astype(np.float64)
    found = PoolLp(pool.hourly_usd, done, need, Sense.COVER, start).solve()
    return proven_prices(found.duals, shapes, pool)


def _price(shapes: Shapes, duals: Floats, most: int, columns_per_type: int) -> tuple[Pool, float]:
    """The most overpriced patterns, and how much too high the duals are at worst, as a factor."""
    overpriced = 1.0
    sets: list[Ints] = []
    rates = rates_by_family(shapes, duals)
    for kind, host in zip(shapes.kinds, shapes.hosts, strict=True):
        cost = kind.hourly_micros / MICROS_PER_USD
        found = search(host, duals, cost, most, rates[kind.family], shapes.slowdown)
        overpriced = max(overpriced, found.ceiling / cost)
        gaining = np.flatnonzero(found.worth > cost * (1 + _SLACK))
        chosen = gaining[np.argsort(-found.worth[gaining], kind="stable")]
        sets.append(found.sets[np.sort(chosen[:columns_per_type])])
    return pool_of(shapes, sets, complete=False), overpriced * (1 + _SLACK)
