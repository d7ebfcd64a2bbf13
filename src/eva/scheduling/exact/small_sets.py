"""Every small set of tasks that is worth more together than it costs, with interference counted.

With interference, sets of more than three or four tasks are hardly ever worth while: everyone
slows everyone. So they are listed level by level, singles to quadruples, all in arrays, each on
the instance type where worth less cost is greatest.

An optimiser seeks out whatever is valued too high. A pair that nobody has measured counts 0.95 in
the table; among thousands of sets, those with unmeasured pairs would win for that reason alone.
Here such a pair counts as if it slowed twice (`doubt`): 0.9025. Measured sets count as measured,
so a co-location that turned out well keeps its place, and the optimiser explores only where
there is something left to gain after the doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eva.model.catalog import Catalog, InstanceType
from eva.model.colocation import ThroughputTable
from eva.model.ids import Workload
from eva.scheduling.exact.lp import Floats, Ints
from eva.scheduling.exact.patterns import undominated
from eva.scheduling.packing import CANNOT_RUN, Packer, Pattern
from eva.scheduling.valuation import QUANTA_PER_MICRO

MOST_SETS = 10_000  # per level; beyond that only the best are kept
MOST_GROWN = 200_000  # sets looked at per level; beyond that only the best are grown
_LARGEST_CROWD = 4


@dataclass(frozen=True, slots=True, eq=False)
class SmallSets:
    """A line per set. `worth` counts interference, `alone` does not; both in micros per hour."""

    kinds: tuple[InstanceType, ...]
    sets: Ints
    kind: Ints
    worth: Ints  # rounded down
    alone: Ints
    complete: bool  # no set within the size limit was left out

    @property
    def hourly_micros(self) -> Ints:
        prices = np.array([kind.hourly_micros for kind in self.kinds], dtype=np.int64)
        return prices[self.kind]

    def pattern(self, line: int, copies: int) -> Pattern:
        members = tuple((int(i), int(self.sets[line, i])) for i in np.flatnonzero(self.sets[line]))
        value = int(self.worth[line]) * QUANTA_PER_MICRO
        return Pattern(self.kinds[self.kind[line]], members, copies, value)

    def pick(self, lines: Ints) -> SmallSets:
        return SmallSets(
            self.kinds,
            self.sets[lines],
            self.kind[lines],
            self.worth[lines],
            self.alone[lines],
            self.complete,
        )


def doubting(packer: Packer, doubt: float) -> Packer:
    """The same packer, for which a pair that nobody has measured slows `doubt` times."""
    table = packer.table.with_default(packer.table.default**doubt)
    return Packer(packer.classes, table, packer.valuation)


def list_small_sets(
    packer: Packer,
    catalog: Catalog,
    stock: Ints,
    most_tasks: int,
    most_grown: int = MOST_GROWN,
) -> SmallSets:
    """Sets of two to `most_tasks` tasks from `stock`, each on its best type.

    Where more than `most_grown` sets would have to be looked at for one size, only the best of
    the size below are grown.
    """
    lister = _Lister(packer, catalog, stock)
    level = np.flatnonzero(stock > 0).reshape(-1, 1)
    level = level[lister.judge(level)[0] >= 0]
    parts: list[SmallSets] = []
    complete = True
    net = np.zeros(len(level), dtype=np.int64)
    for _ in range(1, most_tasks):
        if len(level) * int((stock > 0).sum()) > most_grown and level.shape[1] > 1:
            few = most_grown // int((stock > 0).sum())
            level = level[np.sort(np.argsort(-net, kind="stable")[:few])]
            complete = False
        level = lister.grow(level)
        if not len(level):
            break
        kind, worth, alone = lister.judge(level)
        fits = np.flatnonzero(kind >= 0)
        net = worth[fits] - lister.prices[kind[fits]]
        if len(fits) > MOST_SETS:
            best = np.sort(np.argsort(-net, kind="stable")[:MOST_SETS])
            fits, net = fits[best], net[best]
            complete = False
        level = level[fits]
        parts.append(
            SmallSets(
                lister.kinds, lister.dense(level), kind[fits], worth[fits], alone[fits], complete
            )
        )
    return _join(lister.kinds, parts, len(stock), complete=complete)


class _Lister:
    """Values sets given as rows of class positions, in ascending order with repeats."""

    def __init__(self, packer: Packer, catalog: Catalog, stock: Ints) -> None:
        self.kinds = undominated(catalog)
        self.prices = np.array([kind.hourly_micros for kind in self.kinds], dtype=np.int64)
        self._rooms = np.array([tuple(kind.capacity) for kind in self.kinds], dtype=np.int64).T
        self._packer = packer
        self._stock = stock
        numbers = _number_workloads(packer)
        self._workload = np.array(
            [numbers[group.spec.workload] for group in packer.classes], dtype=np.int64
        )
        self._recorded = _Recorded(packer.table, numbers)

    def grow(self, level: Ints) -> Ints:
        """Every set of `level` with one more task, of its last class or a later one."""
        candidates = np.flatnonzero(self._stock > 0)
        first = np.searchsorted(candidates, level[:, -1])
        counts = len(candidates) - first
        lines = np.repeat(np.arange(len(level)), counts)
        offset = np.arange(len(lines)) - np.repeat(np.cumsum(counts) - counts, counts)
        added = candidates[first[lines] + offset]
        used = (level[lines] == added[:, None]).sum(axis=1)
        keep = used < self._stock[added]
        grown: Ints = np.hstack([level[lines[keep]], added[keep, None]])
        return grown

    def judge(self, level: Ints) -> tuple[Ints, Ints, Ints]:
        """Best type (-1 for none), worth on it, and worth of the tasks alone."""
        kind = np.full(len(level), -1, dtype=np.int64)
        worth = np.zeros(len(level), dtype=np.int64)
        alone = np.zeros(len(level), dtype=np.int64)
        best = np.full(len(level), np.iinfo(np.int64).min)
        speed = self._speeds(level)
        for families in self._looks():
            cheapest = self._cheapest_holding(level, families)
            lines = np.flatnonzero(cheapest >= 0)
            value, plain = self._values(level[lines], families[0], speed[lines])
            net = value - self.prices[cheapest[lines]]
            better = net > best[lines]
            lines, value, plain, net = lines[better], value[better], plain[better], net[better]
            kind[lines], worth[lines], alone[lines] = cheapest[lines], value, plain
            best[lines] = net
        return kind, worth, alone

    def _looks(self) -> list[list[str]]:
        """Families, grouped by how the classes look on them: what is alike is judged once."""
        looks: dict[int, list[str]] = {}
        for family in sorted({kind.family for kind in self.kinds}):
            looks.setdefault(id(self._packer.on(family)), []).append(family)
        return list(looks.values())

    def dense(self, level: Ints) -> Ints:
        sets = np.zeros((len(level), len(self._stock)), dtype=np.int64)
        np.add.at(sets, (np.repeat(np.arange(len(level)), level.shape[1]), level.ravel()), 1)
        return sets

    def _cheapest_holding(self, level: Ints, families: Sequence[str]) -> Ints:
        known = self._packer.on(families[0])
        runs = (known.gpus != CANNOT_RUN)[level].all(axis=1)
        positions = np.array(  # cheapest first: of those that fit, the first is taken
            [i for i, kind in enumerate(self.kinds) if kind.family in families][::-1],
            dtype=np.int64,
        )
        fits = np.repeat(runs[:, None], len(positions), axis=1)
        for amount, room in zip(
            (known.gpus, known.cpu_millis, known.memory_mib), self._rooms, strict=True
        ):
            total = np.where(amount == CANNOT_RUN, 0, amount)[level].sum(axis=1)
            fits &= total[:, None] <= room[positions]
        first = fits.argmax(axis=1)
        cheapest: Ints = np.where(fits[np.arange(len(level)), first], positions[first], -1)
        return cheapest

    def _speeds(self, level: Ints) -> Floats:
        workload = self._packer.workload[level]
        speed = np.ones(level.shape)
        for i in range(level.shape[1]):
            for j in range(level.shape[1]):
                if i != j:
                    speed[:, i] *= self._packer.pairs[workload[:, i], workload[:, j]]
        if level.shape[1] > 2 and self._packer.valuation.interference:
            self._recorded.overrule(self._workload[level], speed)
        return speed

    def _values(self, level: Ints, family: str, speed: Floats) -> tuple[Ints, Ints]:
        known = self._packer.on(family)
        alone = known.alone[level]
        value = (alone - (1.0 - speed) * known.stake[level]).sum(axis=1)
        worth = np.floor(np.rint(value * QUANTA_PER_MICRO) / QUANTA_PER_MICRO).astype(np.int64)
        return worth, alone.sum(axis=1).astype(np.int64)


def _number_workloads(packer: Packer) -> dict[Workload, int]:
    names = sorted({group.spec.workload for group in packer.classes})
    return {name: number for number, name in enumerate(names)}


class _Recorded:
    """The sets of three or more present workloads that were observed, as sorted integer keys.

    A key is the crowd in ascending order, then the workload whose throughput it is about. With
    more than some 6,000 workloads keys would not fit, and pairwise estimates are all there is.
    """

    def __init__(self, table: ThroughputTable, numbers: dict[Workload, int]) -> None:
        self._base = len(numbers) + 1
        present = frozenset(numbers) if self._base**5 < 1 << 63 else frozenset()
        crowds: dict[int, list[list[int]]] = {}
        throughputs: dict[int, list[float]] = {}
        all_present = present.issuperset
        for workload, number in numbers.items():
            row = table.sets_of(workload)
            for beside in [b for b in row if len(b) < _LARGEST_CROWD and all_present(b)]:
                crowds.setdefault(len(beside), []).append(
                    [number, *[numbers[name] for name in beside]]
                )
                throughputs.setdefault(len(beside), []).append(row[beside])
        parts = [self._keys_of(np.array(rows, dtype=np.int64)) for rows in crowds.values()]
        keys = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._throughputs = np.array([t for part in throughputs.values() for t in part])[order]

    def overrule(self, workload: Ints, speed: Floats) -> None:
        """Where the very set of a line has been observed, its record replaces the estimate."""
        if not len(self._keys):
            return
        crowd = self._crowd(workload)
        for i in range(workload.shape[1]):
            keys = crowd * self._base + workload[:, i] + 1
            found = np.searchsorted(self._keys, keys)
            found[found == len(self._keys)] = 0
            known = self._keys[found] == keys
            speed[known, i] = self._throughputs[found[known]]

    def _keys_of(self, rows: Ints) -> Ints:
        """The keys of rows that begin with the workload that they are about."""
        keys: Ints = self._crowd(rows) * self._base + rows[:, 0] + 1
        return keys

    def _crowd(self, workload: Ints) -> Ints:
        """One number per line for the workloads on it, in whatever order."""
        crowd = np.zeros(len(workload), dtype=np.int64)
        for column in np.sort(workload, axis=1).T:
            crowd = crowd * self._base + column + 1  # from one: sizes never share a number
        return crowd


def _join(
    kinds: tuple[InstanceType, ...], parts: list[SmallSets], classes: int, *, complete: bool
) -> SmallSets:
    empty = np.zeros(0, dtype=np.int64)
    return SmallSets(
        kinds,
        np.concatenate([np.zeros((0, classes), dtype=np.int64), *(p.sets for p in parts)]),
        np.concatenate([empty, *(part.kind for part in parts)]),
        np.concatenate([empty, *(part.worth for part in parts)]),
        np.concatenate([empty, *(part.alone for part in parts)]),
        complete,
    )
