"""Algorithm 1 of the paper, over classes of tasks instead of single tasks.

Instance types are tried from the dearest to the cheapest. A new instance is filled greedily: the
task that raises the worth of the set most is added, until nothing fits or nothing raises it. A set
that is worth at least its instance is kept, and, since the greedy choice depends only on which
classes are left, it is repeated for as long as the stock of its classes lasts. What is not worth
its instance moves on to the next cheaper type. Every task that fits anything is placed at the
latest on the type that sets its reservation price, where even alone it is worth exactly the cost.

The plain transcription of the algorithm, one task at a time, stands in the tests and must agree
with this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import numpy.typing as npt

from eva.model.catalog import Catalog, InstanceType
from eva.model.colocation import Neighbours, ThroughputTable, neighbours
from eva.model.ids import Workload
from eva.model.resources import Resources
from eva.scheduling.task_classes import TaskClass
from eva.scheduling.valuation import QUANTA_PER_MICRO, Valuation

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Members = tuple[tuple[int, int], ...]  # (position of the class, how many), in class order

_TINY = np.finfo(np.float64).tiny
CANNOT_RUN = np.iinfo(np.int64).max  # demand of a class on a family that it does not run on


@dataclass(frozen=True, slots=True)
class Pattern:
    """A set of tasks on one instance type, and how many times it is used."""

    type: InstanceType
    members: Members
    copies: int
    value: int  # worth of one copy, in quanta


@dataclass(frozen=True, slots=True)
class _OnFamily:
    """The classes as arrays, as they look on one instance family."""

    gpus: Ints
    cpu_millis: Ints
    memory_mib: Ints
    alone: Floats  # worth of one task alone
    stake: Floats  # what one task at a standstill would cost, siblings included

    def demand(self, choice: int) -> Resources:
        return Resources(
            int(self.gpus[choice]), int(self.cpu_millis[choice]), int(self.memory_mib[choice])
        )

    def same_as(self, other: _OnFamily) -> bool:
        return all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in self.__slots__
        )

    def fitting(self, candidates: Ints, room: Resources) -> Ints:
        return candidates[
            (self.gpus[candidates] <= room.gpus)
            & (self.cpu_millis[candidates] <= room.cpu_millis)
            & (self.memory_mib[candidates] <= room.memory_mib)
        ]


class Packer:
    """Fills instances from a stock of task classes under one table and one valuation."""

    def __init__(
        self,
        classes: tuple[TaskClass, ...],
        table: ThroughputTable,
        valuation: Valuation,
    ) -> None:
        self.classes = classes
        self.table = table
        self.valuation = valuation
        self.names, self.workload = _index_workloads(classes, table)
        self.pairs = _pair_matrix(self.names, table)
        self._families: dict[str, _OnFamily] = {}
        self._hostable: dict[str, Ints] = {}
        self._runs: dict[Workload, npt.NDArray[np.bool_]] = {}
        self.any_set_recorded = any(table.sets_of(group.spec.workload) for group in classes)

    def fill(
        self,
        kind: InstanceType,
        stock: Ints,
        candidates: Ints,
        present: Members = (),
    ) -> tuple[Members, int]:
        """Greedily add tasks from `stock` to the `present` ones; the set and its worth in quanta.

        `candidates` are class positions in tie order; those out of stock are passed over.
        """
        filling = _Filling(self, kind, present)
        candidates = candidates[stock[candidates] > 0]
        while True:
            candidates = filling.family.fitting(candidates, filling.room)
            if not len(candidates):
                break
            choice, value = filling.best(candidates)
            if value <= filling.value:
                break
            filling.add(choice, value)
            if stock[choice] == filling.counts[choice] - dict(present).get(choice, 0):
                candidates = candidates[candidates != choice]
        return filling.members(), filling.value

    def holds(self, kind: InstanceType, members: Members) -> bool:
        """Whether one instance of `kind` has room for all of `members` at once."""
        needed = self.total_demand(kind.family, members)
        return needed is not None and needed.fits_in(kind.capacity)

    def total_demand(self, family: str, members: Members) -> Resources | None:
        """What `members` need together on `family`; None where one of them cannot run on it."""
        gpus = cpu_millis = memory_mib = 0
        for index, count in members:
            needed = self.classes[index].spec.demand.on(family)
            if needed is None:
                return None
            gpus += count * needed.gpus
            cpu_millis += count * needed.cpu_millis
            memory_mib += count * needed.memory_mib
        return Resources(gpus, cpu_millis, memory_mib)

    def value(self, family: str, members: Members) -> int:
        """What `members` are worth together on one instance of `family`, in quanta."""
        return self.valuation.value(
            family, [(self.classes[index], count) for index, count in members], self.table
        )

    def hostable(self, kind: InstanceType) -> Ints:
        """Positions of the classes whose tasks an empty instance of `kind` can hold."""
        found = self._hostable.get(kind.name)
        if found is None:
            everything = np.arange(len(self.classes), dtype=np.int64)
            found = self.on(kind.family).fitting(everything, kind.capacity)
            self._hostable[kind.name] = found
        return found

    def most_worth(self, kind: InstanceType, stock: Ints, candidates: Ints) -> float:
        """What no set of the candidates can exceed on `kind`, in micro-dollars: all of them."""
        return float(self.on(kind.family).alone[candidates] @ stock[candidates])

    def on(self, family: str) -> _OnFamily:
        """The classes as they look on a family; families on which all look alike share one look."""
        if family not in self._families:
            look = self._describe(family)
            alike = (known for known in self._families.values() if known.same_as(look))
            self._families[family] = next(alike, look)
        return self._families[family]

    def anyone_is_slowed(self) -> bool:
        """Whether any two of the classes are expected to interfere at all."""
        if not self.valuation.interference:
            return False
        return self.any_set_recorded or bool((self.pairs < 1).any())

    def runs(self, workload: Workload) -> npt.NDArray[np.bool_]:
        """Which of the classes run `workload`."""
        found = self._runs.get(workload)
        if found is None:
            found = np.array([group.spec.workload == workload for group in self.classes])
            self._runs[workload] = found
        return found

    def _describe(self, family: str) -> _OnFamily:
        demands = [group.spec.demand.on(family) for group in self.classes]
        runs = [demand is not None for demand in demands]
        rows = [demand or (CANNOT_RUN,) * 3 for demand in demands]
        columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy()
        return _OnFamily(
            columns[0],
            columns[1],
            columns[2],
            np.array(
                [
                    group.price.on(family) if ok else 0
                    for group, ok in zip(self.classes, runs, strict=True)
                ],
                dtype=np.float64,
            ),
            np.array(
                [
                    self._stake(group, family) if ok else 0.0
                    for group, ok in zip(self.classes, runs, strict=True)
                ],
                dtype=np.float64,
            ),
        )

    def _stake(self, group: TaskClass, family: str) -> float:
        if not self.valuation.interference:
            return 0.0
        return float(self.valuation.at_stake_micros(group, family))


def alignment(demands: Sequence[Ints], room: Resources) -> Ints:
    """How far each demand has the shape of `room`: the cosine between the two, in whole steps.

    Shares of what is left are compared, so that no resource is used up while another lies idle.
    Steps are coarse enough that the last bits of a float cannot decide.
    """
    gpus, cpus, memory = (
        amounts / max(1, left) for amounts, left in zip(demands, room, strict=True)
    )
    length = np.sqrt(gpus * gpus + cpus * cpus + memory * memory)
    cosine = (gpus + cpus + memory) / np.maximum(length, _TINY)
    steps: Ints = np.rint(cosine * (1 << 20)).astype(np.int64)
    return steps


class _Filling:
    """One instance while it is being filled: its room, its members and how fast each would run."""

    def __init__(self, packer: Packer, kind: InstanceType, present: Members) -> None:
        self._packer = packer
        self._kind = kind
        self.family = packer.on(kind.family)
        self.room = kind.capacity
        self.counts: dict[int, int] = {}
        self.value = 0
        self._slowdown = np.ones(len(packer.names))  # of a newcomer, by workload
        self._speed: dict[int, float] = {}  # of the members, by class
        self._crowd: Neighbours = ()
        self._unshaken = 0.0  # what the members are worth at a standstill: whole micro-dollars
        for choice, count in present:
            for _ in range(count):
                self._admit(choice)
        if present:
            self.value = packer.value(kind.family, self.members())

    def best(self, candidates: Ints) -> tuple[int, int]:
        """The candidate that gives the set its greatest worth, and that worth in quanta."""
        family, packer = self.family, self._packer
        worth = family.alone[candidates] + self._unshaken
        if self.counts and packer.valuation.interference:
            workload, stake = packer.workload[candidates], family.stake[candidates]
            kept = self._kept_by_newcomer()
            worth += kept[workload] - stake * (1.0 - self._slowdown)[workload]
        values = np.rint(worth * QUANTA_PER_MICRO)
        if self.counts and packer.valuation.interference and packer.any_set_recorded:
            self._correct_recorded(candidates, values)
        position = self._best_aligned(candidates, np.flatnonzero(values == values.max()))
        return int(candidates[position]), int(values[position])

    def _best_aligned(self, candidates: Ints, tied: Ints) -> int:
        """Of equally good candidates, the one shaped most like the room that is left."""
        if len(tied) == 1:
            return int(tied[0])
        family, choices = self.family, candidates[tied]
        demands = (family.gpus[choices], family.cpu_millis[choices], family.memory_mib[choices])
        return int(tied[alignment(demands, self.room).argmax()])

    def add(self, choice: int, value: int) -> None:
        self._admit(choice)
        self.value = value

    def members(self) -> Members:
        return tuple(sorted(self.counts.items()))

    def _admit(self, choice: int) -> None:
        packer, family = self._packer, self.family
        pairs = packer.pairs
        new = packer.workload[choice]
        for member in self._speed:
            self._speed[member] *= pairs[packer.workload[member], new]
        if choice not in self._speed:
            self._speed[choice] = float(self._slowdown[new])
        self._slowdown *= pairs[:, new]
        self.counts[choice] = self.counts.get(choice, 0) + 1
        self._unshaken += float(family.alone[choice] - family.stake[choice])
        self.room = self.room.minus(family.demand(choice))
        if packer.any_set_recorded:
            self._crowd = neighbours((*self._crowd, packer.classes[choice].spec.workload))

    def _kept_by_newcomer(self) -> Floats:
        """What the members keep of what is at stake, as a function of the newcomer's workload."""
        packer, family = self._packer, self.family
        rows = [packer.workload[member] for member in self.counts]
        at_stake = [
            count * family.stake[member] * self._speed[member]
            for member, count in self.counts.items()
        ]
        kept: Floats = np.array(at_stake) @ packer.pairs[rows]
        return kept

    def _correct_recorded(self, candidates: Ints, values: Floats) -> None:
        """Where the very set has been observed, its record replaces the pairwise estimate."""
        packer = self._packer
        for workload in packer.table.extensions(self._crowd):
            for position in np.flatnonzero(packer.runs(workload)[candidates]):
                counts = dict(self.counts)
                choice = int(candidates[position])
                counts[choice] = counts.get(choice, 0) + 1
                values[position] = packer.value(self._kind.family, tuple(sorted(counts.items())))


def pack(packer: Packer, catalog: Catalog, stock: Ints) -> list[Pattern]:
    """Algorithm 1: cover the stock with patterns, dearest instance type first.

    `stock` says how many tasks of each of the packer's classes are to be placed; it is not changed.
    """
    left = stock.copy()
    patterns: list[Pattern] = []
    for kind in catalog:
        if not left.any():
            break
        candidates = packer.hostable(kind)
        while True:
            candidates = candidates[left[candidates] > 0]
            if packer.most_worth(kind, left, candidates) < kind.hourly_micros:
                break
            members, value = packer.fill(kind, left, candidates)
            if not members or value < kind.hourly_micros * QUANTA_PER_MICRO:
                break
            copies = min(int(left[index]) // count for index, count in members)
            for index, count in members:
                left[index] -= copies * count
            patterns.append(Pattern(kind, members, copies, value))
    return patterns


def full_stock(classes: Sequence[TaskClass]) -> Ints:
    return np.array([len(group) for group in classes], dtype=np.int64)


def _index_workloads(
    classes: Sequence[TaskClass],
    table: ThroughputTable,
) -> tuple[list[Workload], Ints]:
    """Number the workloads. Those of which no pair is known share one number: they look alike."""
    known = _known_workloads({group.spec.workload for group in classes}, table)
    numbers: dict[Workload | None, int] = {}
    names: list[Workload] = []
    index = []
    for group in classes:
        key = group.spec.workload if group.spec.workload in known else None
        if key not in numbers:
            numbers[key] = len(names)
            names.append(group.spec.workload)
        index.append(numbers[key])
    return names, np.array(index, dtype=np.int64)


def _known_workloads(present: Iterable[Workload], table: ThroughputTable) -> set[Workload]:
    names = sorted(present)
    known: set[Workload] = set()
    for name in names:
        row = table.pairs_of(name)
        met = [other for other in names if other in row] if row else []
        if met:
            known.add(name)
            known.update(met)
    return known


def _pair_matrix(names: Sequence[Workload], table: ThroughputTable) -> Floats:
    """`matrix[i, j]`: throughput of workload i beside workload j."""
    matrix = np.full((len(names), len(names)), table.default)
    for i, name in enumerate(names):
        row = table.pairs_of(name)
        if row:
            matrix[i] = list(map(row.get, names, repeat(table.default)))
    return matrix
