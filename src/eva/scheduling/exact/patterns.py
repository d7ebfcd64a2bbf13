"""The pattern formulation: classes of equal demand, and the sets of them worth renting a type for.

A *pattern* is a set of tasks on one instance type. Only patterns whose tasks would cost at least
as much alone matter: any other can be replaced by its tasks on their own cheapest types. That
leaves thousands of patterns where there are billions of assignments (4,000 for the paper's ten
workloads and 21 types), and they are listed outright; where demands are too many for that, the
bound finds patterns as it needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from eva.model.catalog import Catalog, InstanceType
from eva.model.ids import Workload
from eva.model.jobs import TaskSpec
from eva.model.units import MICROS_PER_USD
from eva.scheduling.exact.lp import Floats, Ints
from eva.scheduling.exact.search import Found, Host, Slowdown, room_rates, search
from eva.scheduling.packing import CANNOT_RUN
from eva.scheduling.reservation_price import fits_alone

MOST_PARTIAL_SETS = 40_000  # per instance type, when listing
MOST_CELLS = 2_000_000  # partial sets times classes
MOST_PATTERNS = 60_000

PairThroughput = Callable[[Workload, Workload], float]


@dataclass(frozen=True, slots=True)
class Need:
    """An amount of one kind of task: so many at once, or so much of their time.

    At most `together` of them ever share an instance; None where any number may.
    """

    spec: TaskSpec
    amount: int
    together: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """Needs merged where packing cannot tell them apart, and the instance types worth a look.

    `of_need` says which shape each need belongs to; -1 for those that fit no instance type.
    """

    kinds: tuple[InstanceType, ...]
    hosts: tuple[Host, ...]  # aligned with `kinds`
    amounts: Ints
    cheapest: Ints  # hourly micros of the cheapest type that hosts one alone
    of_need: tuple[int, ...]
    slowdown: Slowdown | None = None

    def __len__(self) -> int:
        return len(self.amounts)

    @property
    def prices(self) -> Ints:
        return np.array([kind.hourly_micros for kind in self.kinds], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Patterns as arrays: a line of `sets` per pattern, and its type as a position in `kinds`."""

    kinds: tuple[InstanceType, ...]
    sets: Ints
    kind: Ints
    complete: bool  # every pattern that could matter is here

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def hourly_micros(self) -> Ints:
        prices = np.array([kind.hourly_micros for kind in self.kinds], dtype=np.int64)
        return prices[self.kind]

    @property
    def hourly_usd(self) -> Floats:
        return self.hourly_micros / MICROS_PER_USD


def shapes_of(
    catalog: Catalog,
    needs: Sequence[Need],
    throughput: PairThroughput | None = None,
) -> Shapes:
    """Merge equal demands (and, where neighbours slow each other, equal workloads)."""
    kinds = undominated(catalog)
    numbers: dict[object, int] = {}
    firsts: list[TaskSpec] = []
    of_need: list[int] = []
    for need in needs:
        if not any(fits_alone(need.spec, kind) for kind in kinds):
            of_need.append(-1)
            continue
        workload = None if throughput is None else need.spec.workload
        number = numbers.setdefault((need.spec.demand, workload), len(firsts))
        if number == len(firsts):
            firsts.append(need.spec)
        of_need.append(number)
    amounts, limits = _amounts(needs, of_need, len(firsts))
    return Shapes(
        kinds,
        _hosts(kinds, firsts, limits),
        amounts,
        np.array(
            [min(k.hourly_micros for k in kinds if fits_alone(s, k)) for s in firsts],
            dtype=np.int64,
        ),
        tuple(of_need),
        None if throughput is None else slowdown_of([s.workload for s in firsts], throughput),
    )


def undominated(catalog: Catalog) -> tuple[InstanceType, ...]:
    """Types that no other of their family matches in every resource for the same money or less."""
    kept: list[InstanceType] = []
    for kind in catalog:  # dearest first, larger first among equals
        rivals = (other for other in catalog if other.family == kind.family and other != kind)
        if not any(_dominates(other, kind) for other in rivals):
            kept.append(kind)
    return tuple(kept)


def list_patterns(shapes: Shapes) -> Pool:
    """Every maximal pattern worth its price; only single tasks where these are too many.

    `Pool.complete` says which it is.
    """
    found: list[Found] = []
    worth = shapes.cheapest / MICROS_PER_USD
    rates = rates_by_family(shapes, worth)
    most = min(MOST_PARTIAL_SETS, MOST_CELLS // max(1, len(shapes)))
    for kind, host in zip(shapes.kinds, shapes.hosts, strict=True):
        floor = kind.hourly_micros / MICROS_PER_USD
        family = rates[kind.family]
        found.append(search(host, worth, floor, most, family, shapes.slowdown, give_up=True))
        if not found[-1].complete or sum(len(part.sets) for part in found) > MOST_PATTERNS:
            return _alone(shapes)
    return pool_of(shapes, [part.sets for part in found], complete=True)


def rates_by_family(shapes: Shapes, worth: Floats) -> dict[str, Floats]:
    """Prices of room per family, from its dearest type, which can run most classes."""
    rates: dict[str, Floats] = {}
    for kind, host in zip(shapes.kinds, shapes.hosts, strict=True):
        if kind.family not in rates:
            rates[kind.family] = room_rates(host, worth)
    return rates


def pool_of(shapes: Shapes, sets: Sequence[Ints], *, complete: bool) -> Pool:
    """A pool of the given sets, one array of them per instance type."""
    lines = np.concatenate(sets) if sets else np.zeros((0, len(shapes)), np.int64)
    kind = np.repeat(np.arange(len(sets)), [len(part) for part in sets])
    return Pool(shapes.kinds, lines, kind, complete)


def joined(pools: Sequence[Pool]) -> Pool:
    """Several pools of the same instance types in one; complete only if it is a single one."""
    return Pool(
        pools[0].kinds,
        np.concatenate([pool.sets for pool in pools]),
        np.concatenate([pool.kind for pool in pools]),
        len(pools) == 1 and pools[0].complete,
    )


def _alone(shapes: Shapes) -> Pool:
    """Every class alone on its cheapest type: with these, anything can be covered."""
    kind = [
        next(
            position
            for position, (kind, host) in enumerate(zip(shapes.kinds, shapes.hosts, strict=True))
            if kind.hourly_micros == price and (host.demands[shape] <= host.room).all()
        )
        for shape, price in enumerate(shapes.cheapest)
    ]
    sets = np.eye(len(shapes), dtype=np.int64)
    return Pool(shapes.kinds, sets, np.array(kind, dtype=np.int64), complete=False)


def slowdown_of(workloads: Sequence[Workload], throughput: PairThroughput) -> Slowdown:
    names = sorted(set(workloads))
    number = {name: position for position, name in enumerate(names)}
    pairs = np.array([[throughput(a, b) for b in names] for a in names], dtype=np.float64)
    pairs = pairs.reshape(len(names), len(names))
    return Slowdown(
        np.array([number[w] for w in workloads], dtype=np.int64),
        np.log(np.clip(pairs, 1e-12, 1.0)),
    )


def _amounts(needs: Iterable[Need], of_need: Sequence[int], count: int) -> tuple[Ints, Ints]:
    amounts = np.zeros(count, dtype=np.int64)
    limits = np.zeros(count, dtype=np.int64)
    for need, number in zip(needs, of_need, strict=True):
        if number >= 0:
            amounts[number] += need.amount
            together = CANNOT_RUN if need.together is None else need.together
            limits[number] = min(CANNOT_RUN - together, limits[number]) + together
    return amounts, limits


def _hosts(
    kinds: Sequence[InstanceType],
    specs: Sequence[TaskSpec],
    limits: Ints,
) -> tuple[Host, ...]:
    by_family: dict[str, Ints] = {}
    for family in {kind.family for kind in kinds}:
        rows = [spec.demand.on(family) or (CANNOT_RUN,) * 3 for spec in specs]
        by_family[family] = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return tuple(
        Host(np.array(kind.capacity, dtype=np.int64), by_family[kind.family], limits)
        for kind in kinds
    )


def _dominates(other: InstanceType, kind: InstanceType) -> bool:
    if not kind.capacity.fits_in(other.capacity) or other.hourly_micros > kind.hourly_micros:
        return False
    same = (other.capacity, other.hourly_micros) == (kind.capacity, kind.hourly_micros)
    return not same or other.name < kind.name
