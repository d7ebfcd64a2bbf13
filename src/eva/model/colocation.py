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

from eva.model.ids import Workload

DEFAULT_THROUGHPUT = 0.95

Neighbours = tuple[Workload, ...]  # a multiset: sorted, repeats kept


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
    _rows: Mapping[Workload, Mapping[Neighbours, float]] = field(default_factory=dict)
    _extensions: Mapping[Neighbours, frozenset[Workload]] = field(default_factory=dict)

    def recorded(self, workload: Workload, beside: Neighbours) -> float | None:
        """The recorded entry for exactly these neighbours, if there is one."""
        row = self._rows.get(workload)
        return None if row is None else row.get(beside)

    def pair(self, workload: Workload, neighbour: Workload) -> float:
        row = self._rows.get(workload)
        return self.default if row is None else row.get((neighbour,), self.default)

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
        rows = dict(self._rows)
        fresh: dict[Workload, dict[Neighbours, float]] = {}
        extensions: dict[Neighbours, frozenset[Workload]] | None = None
        for entry in entries:
            if not entry.beside:
                continue
            if not 0 < entry.throughput < math.inf:
                raise ValueError(f"throughput of {entry.workload} is {entry.throughput}")
            if entry.workload not in fresh:
                fresh[entry.workload] = dict(rows.get(entry.workload, {}))
                rows[entry.workload] = fresh[entry.workload]
            row = fresh[entry.workload]
            if len(entry.beside) > 1 and entry.beside not in row:
                if extensions is None:
                    extensions = dict(self._extensions)
                _index_extensions(extensions, neighbours((*entry.beside, entry.workload)))
            row[entry.beside] = min(1.0, entry.throughput)
        return ThroughputTable(
            self.default, rows, self._extensions if extensions is None else extensions
        )

    def with_default(self, default: float) -> ThroughputTable:
        return ThroughputTable(default, self._rows, self._extensions)

    def pairs_known(self, workload: Workload) -> bool:
        """Whether anything at all is recorded for this workload."""
        return workload in self._rows

    def __iter__(self) -> Iterator[Entry]:
        for workload in sorted(self._rows):
            for beside in sorted(self._rows[workload]):
                yield Entry(workload, beside, self._rows[workload][beside])

    def __len__(self) -> int:
        return sum(len(row) for row in self._rows.values())


def _index_extensions(
    extensions: dict[Neighbours, frozenset[Workload]],
    group: Neighbours,
) -> None:
    for workload in set(group):
        rest = without(group, workload)
        extensions[rest] = extensions.get(rest, frozenset()) | {workload}
