"""The co-location throughput table: how fast a workload runs beside others, as far as is known.

A look-up asks three things in turn: was this very set of neighbours recorded; if not, the product
of the pairwise entries; and for a pair that nobody has seen, the default `t` (0.95 in the paper).
Alone is 1 by definition and is never recorded: a table that called a lone task slow would make it
look not worth its own instance.

Tables are immutable: `record` returns a new one that shares every row it did not touch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from eva.model.ids import Workload

DEFAULT_THROUGHPUT = 0.95

Neighbours = tuple[Workload, ...]  # a multiset: sorted, repeats kept

Key = TypeVar("Key", Workload, Neighbours)


def neighbours(workloads: Iterable[Workload]) -> Neighbours:
    return tuple(sorted(workloads))


def without(group: Neighbours, workload: Workload) -> Neighbours:
    """The multiset `group` less one `workload`."""
    index = group.index(workload)
    return group[:index] + group[index + 1 :]


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded fact: `workload` beside `beside` ran at `throughput` of its standalone speed."""

    workload: Workload
    beside: Neighbours
    throughput: float


@dataclass(frozen=True, eq=False)
class ThroughputTable:
    """What is known about co-location, keyed by workload fingerprint."""

    default: float = DEFAULT_THROUGHPUT
    _pairs: Mapping[Workload, Mapping[Workload, float]] = field(default_factory=dict)
    _sets: Mapping[Workload, Mapping[Neighbours, float]] = field(default_factory=dict)
    _extensions: Mapping[Neighbours, frozenset[Workload]] = field(default_factory=dict)

    def recorded(self, workload: Workload, beside: Neighbours) -> float | None:
        """The recorded entry for exactly these neighbours, if there is one."""
        if len(beside) == 1:
            return self.pairs_of(workload).get(beside[0])
        return self.sets_of(workload).get(beside)

    def pairs_of(self, workload: Workload) -> Mapping[Workload, float]:
        """All recorded pairs of `workload`: its throughput by single neighbour."""
        return self._pairs.get(workload, _NOTHING_RECORDED)

    def sets_of(self, workload: Workload) -> Mapping[Neighbours, float]:
        """All recorded sets of `workload` with two or more neighbours."""
        return self._sets.get(workload, _NOTHING_RECORDED)

    def pair(self, workload: Workload, neighbour: Workload) -> float:
        return self.pairs_of(workload).get(neighbour, self.default)

    def throughput(self, workload: Workload, beside: Neighbours) -> float:
        """Expected normalized throughput of `workload` beside `beside` (sorted)."""
        if not beside:
            return 1.0
        known = self.recorded(workload, beside)
        if known is not None:
            return known
        return math.prod(self.pair(workload, neighbour) for neighbour in beside)

    def extensions(self, group: Neighbours) -> frozenset[Workload]:
        """Workloads that make a recorded set of three or more when they join `group`."""
        return self._extensions.get(group, frozenset())

    def record(self, entries: Iterable[Entry]) -> ThroughputTable:
        """A table that also knows `entries`. Values above 1 count as 1; empty sets are ignored."""
        pairs = _CopiedRows(self._pairs)
        sets = _CopiedRows(self._sets)
        extensions: dict[Neighbours, frozenset[Workload]] = {}
        for entry in entries:
            if not 0 < entry.throughput < math.inf:
                raise ValueError(f"throughput of {entry.workload} is {entry.throughput}")
            throughput = min(1.0, entry.throughput)
            if len(entry.beside) == 1:
                pairs.row(entry.workload)[entry.beside[0]] = throughput
            elif entry.beside:
                group = neighbours((*entry.beside, entry.workload))
                if entry.beside not in sets.row(entry.workload):
                    self._index_extensions(extensions, group)
                sets.row(entry.workload)[entry.beside] = throughput
        return ThroughputTable(
            self.default,
            pairs.rows,
            sets.rows,
            {**self._extensions, **extensions} if extensions else self._extensions,
        )

    def _index_extensions(
        self, fresh: dict[Neighbours, frozenset[Workload]], group: Neighbours
    ) -> None:
        for workload in set(group):
            rest = without(group, workload)
            fresh[rest] = fresh.get(rest, self.extensions(rest)) | {workload}

    def with_default(self, default: float) -> ThroughputTable:
        return ThroughputTable(default, self._pairs, self._sets, self._extensions)

    def __iter__(self) -> Iterator[Entry]:
        for workload in sorted(self._pairs):
            for neighbour, throughput in sorted(self._pairs[workload].items()):
                yield Entry(workload, (neighbour,), throughput)
        for workload in sorted(self._sets):
            for beside, throughput in sorted(self._sets[workload].items()):
                yield Entry(workload, beside, throughput)

    def __len__(self) -> int:
        return sum(len(row) for rows in (self._pairs, self._sets) for row in rows.values())


_NOTHING_RECORDED: Mapping[Any, float] = {}


class _CopiedRows(Generic[Key]):
    """Rows of a table under change: a row is copied when first written, the rest is shared."""

    def __init__(self, rows: Mapping[Workload, Mapping[Key, float]]) -> None:
        self.rows: dict[Workload, Mapping[Key, float]] = dict(rows)
        self._copied: dict[Workload, dict[Key, float]] = {}

    def row(self, workload: Workload) -> dict[Key, float]:
        if workload not in self._copied:
            self._copied[workload] = dict(self.rows.get(workload, {}))
            self.rows[workload] = self._copied[workload]
        return self._copied[workload]
