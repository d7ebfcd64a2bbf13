"""Finding the sets of tasks that one instance type can hold and that are worth its price.

One breadth-first search, a class at a time and all partial sets at once in arrays, does three
jobs: listing every maximal set when they are few, pricing (the best sets at given dual prices, a
small knapsack in three resources) when they are many, and both again where neighbours slow each
other. Partial sets that cannot become worth the price any more are dropped, by a bound that
prices the room that is left. When too many partial sets remain, the least promising are dropped
too, and the *ceiling* of what they might have become is kept: a bound computed from it stays true.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eva.scheduling.exact.lp import Floats, Ints, Sense, SetLp

_MOST_LEVELS = 24  # of room, per resource, at which hope is looked up
_SLACK = 1e-9  # relative: rounding must never prune a set that is exactly worth its price


@dataclass(frozen=True, slots=True)
class Slowdown:
    """How neighbours slow each other: workload number per class, throughput per ordered pair."""

    workload: Ints
    log_pairs: Floats  # [i, j]: logarithm of the throughput of workload i beside workload j


@dataclass(frozen=True, slots=True)
class Host:
    """An instance type and the classes of tasks, as the search sees them."""

    room: Ints
    demands: Ints  # a line per class
    limits: Ints  # how many of each class may share one instance


@dataclass(frozen=True, slots=True)
class Found:
    """`sets` worth at least the floor; no set that was left out is worth more than `ceiling`."""

    sets: Ints
    worth: Floats
    ceiling: float
    complete: bool


@dataclass(slots=True)
class _Partial:
    """Partial sets: members so far, the room left, and what they are worth."""

    sets: Ints
    room: Ints
    worth: Floats
    held: Floats  # worth at full speed by workload; no columns where nobody slows anybody
    log_speed: Floats  # of a newcomer, by workload

    def pick(self, lines: Ints) -> _Partial:
        return _Partial(
            self.sets[lines],
            self.room[lines],
            self.worth[lines],
            self.held[lines],
            self.log_speed[lines],
        )


def search(
    host: Host,
    worth: Floats,
    floor: float,
    most: int,
    rates: Floats,
    slowdown: Slowdown | None = None,
    *,
    give_up: bool = False,
) -> Found:
    """Sets that `host` can hold and that are worth at least `floor`.

    Without `slowdown` only sets to which nothing can be added matter, and only those are given
    as long as the search is complete. `give_up` ends it with nothing once it cannot be.
    """
    usable = usable_classes(host, worth)
    classes = host.limits.size
    if not len(usable):
        return Found(np.zeros((0, classes), np.int64), np.zeros(0), floor, True)
    order = usable[np.lexsort((usable, *(-host.demands[usable].T[::-1])))]
    promise = _Promise(host.demands[order], worth[order], rates)
    partial = _empty_set(host, slowdown)
    ceiling = floor
    complete = True
    for position, choice in enumerate(order):
        last = position == len(order) - 1 and slowdown is None
        partial = _extend(partial, host, int(choice), worth[choice], slowdown, only_most=last)
        hope = promise.hope(partial, position + 1)
        keep = np.flatnonzero(hope >= floor * (1 - _SLACK))
        if len(keep) > most and give_up:
            return Found(np.zeros((0, classes), np.int64), np.zeros(0), math.inf, complete=False)
        if len(keep) > most:
            ranked = keep[np.argsort(-hope[keep], kind="stable")]
            ceiling = max(ceiling, float(hope[ranked[most]]))
            keep, complete = np.sort(ranked[:most]), False
        partial = partial.pick(keep)
    if complete and slowdown is None:
        partial = partial.pick(_maximal(partial, host, order))
    best = float(partial.worth.max(initial=0.0))
    return Found(partial.sets, partial.worth, max(ceiling, best), complete)


def usable_classes(host: Host, worth: Floats) -> Ints:
    fits = (host.demands <= host.room).all(axis=1)
    return np.flatnonzero(fits & (host.limits > 0) & (worth > 0))


def _empty_set(host: Host, slowdown: Slowdown | None) -> _Partial:
    workloads = 0 if slowdown is None else len(slowdown.log_pairs)
    return _Partial(
        np.zeros((1, host.limits.size), np.int64),
        host.room.reshape(1, 3).copy(),
        np.zeros(1),
        np.zeros((1, workloads)),
        np.zeros((1, workloads)),
    )


def _extend(
    partial: _Partial,
    host: Host,
    choice: int,
    worth: float,
    slowdown: Slowdown | None,
    *,
    only_most: bool,
) -> _Partial:
    """Every partial set with 0, 1, 2, ... tasks of class `choice` (or only as many as fit)."""
    demand = host.demands[choice]
    needed = demand > 0
    fits = (partial.room[:, needed] // demand[needed]).min(axis=1, initial=host.limits[choice])
    if only_most:
        lines, counts = np.arange(len(fits)), fits
    else:
        lines = np.repeat(np.arange(len(fits)), fits + 1)
        first = np.cumsum(fits + 1) - (fits + 1)
        counts = np.arange(len(lines)) - first[lines]
    grown = partial.pick(lines)
    grown.sets[:, choice] = counts
    grown.room -= counts[:, None] * demand
    grown.worth += counts * worth
    if slowdown is not None:
        _slow(grown, slowdown, int(slowdown.workload[choice]), counts, worth)
    return grown


def _slow(grown: _Partial, slowdown: Slowdown, kind: int, counts: Ints, worth: float) -> None:
    grown.held[:, kind] += counts * worth
    grown.log_speed += counts[:, None] * slowdown.log_pairs[:, kind]
    beside_self = np.diagonal(slowdown.log_pairs)  # a task is not its own neighbour
    grown.worth = (grown.held * np.exp(np.minimum(grown.log_speed - beside_self, 0.0))).sum(axis=1)


class _Promise:
    """What room may still be worth, to classes from some position on that fit it one by one.

    Bounds by density alone would fill half a large instance with half of a large task. So the
    densest class is looked for only among those whose demand, resource by resource, does not
    exceed the room that is left (to one of a few levels, rounded in favour of hope).
    """

    def __init__(self, demands: Ints, worth: Floats, rates: Floats) -> None:
        self._rates = rates
        priced = demands @ rates.T
        with np.errstate(divide="ignore"):
            density = np.where(priced > 0, worth[:, None] / priced, np.inf)
        self._levels = [_levels(column) for column in demands.T]
        self._suffix = [
            _suffix_maxima(density, column, levels)
            for column, levels in zip(demands.T, self._levels, strict=True)
        ]

    def hope(self, partial: _Partial, position: int) -> Floats:
        """The most that each partial set can be worth, given classes from `position` on."""
        priced = partial.room @ self._rates.T
        more = np.full(len(priced), np.inf)
        for resource, levels in enumerate(self._levels):
            reach = np.searchsorted(levels, partial.room[:, resource], side="right")
            densest = self._suffix[resource][reach, position]
            with np.errstate(invalid="ignore"):
                promised = np.where(np.isinf(densest), np.inf, priced * densest)
            np.minimum(more, promised.min(axis=1), out=more)
        if partial.log_speed.size:
            more = more * np.exp(partial.log_speed.max(axis=1))
        hope: Floats = partial.worth + more
        return hope


def _levels(demand: Ints) -> Ints:
    """At most `_MOST_LEVELS` of the demands that occur, in ascending order."""
    distinct = np.unique(demand)
    step = -(-len(distinct) // _MOST_LEVELS)
    return distinct[::step]


def _suffix_maxima(density: Floats, demand: Ints, levels: Ints) -> Floats:
    """[reach, i, rate]: greatest density from class i on, among demands below `levels[reach]`."""
    maxima = np.zeros((len(levels) + 1, len(density) + 1, density.shape[1]))
    for reach in range(1, len(levels) + 1):
        within = demand < levels[reach] if reach < len(levels) else demand >= 0
        allowed = np.where(within[:, None], density, 0.0)
        maxima[reach, :-1] = np.maximum.accumulate(allowed[::-1], axis=0)[::-1]
    return maxima


def room_rates(host: Host, worth: Floats) -> Floats:
    """Prices of room by which to judge what is left of it: each resource alone, and the best mix.

    The best mix is the dual of the knapsack's own relaxation: the cheapest prices of the three
    resources at which no class is worth more than the room it takes. Any prices give a true
    bound, so types of equal proportions share theirs.
    """
    usable = usable_classes(host, worth)
    scale = np.maximum(host.room, 1).astype(np.float64)
    lp = SetLp(worth[usable], Sense.COVER)
    lp.add(np.ones(3), (host.demands[usable] / scale).T)
    mix = np.maximum(lp.solve().amounts, 0.0)
    rows = np.vstack([mix, np.eye(3)]) / scale
    return rows[(rows > 0).any(axis=1)]


def _maximal(partial: _Partial, host: Host, order: Ints) -> Ints:
    whole = np.ones(len(partial.sets), dtype=bool)
    for choice in order:
        room = (host.demands[choice] <= partial.room).all(axis=1)
        whole &= ~(room & (partial.sets[:, choice] < host.limits[choice]))
    return np.flatnonzero(whole)
