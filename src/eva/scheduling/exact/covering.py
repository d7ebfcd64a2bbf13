"""Least hourly cost without interference, as a covering problem over patterns.

Classes of equal demand are one *shape* here, whatever their workload, and a pattern may cover more
than is there: what is covered twice is simply left out when tasks are named, and the instance
shrinks if a smaller type then does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eva.model.catalog import Catalog, InstanceType
from eva.model.units import MICROS_PER_USD
from eva.scheduling.exact.bounds import PricingEffort, generate, proven_prices, relax
from eva.scheduling.exact.choose import Columns, best_of, cost_of
from eva.scheduling.exact.lp import Floats, Ints, Sense
from eva.scheduling.exact.patterns import Need, Pool, Shapes, joined, list_patterns, shapes_of
from eva.scheduling.exact.rounding import Rounded, whole_numbers
from eva.scheduling.packing import Members, Packer, Pattern, pack
from eva.scheduling.reconfiguration import right_sized
from eva.scheduling.valuation import QUANTA_PER_MICRO

PROOF_GAP = 1e-4  # relative; closer than this counts as optimal
_BOUND_SLACK = 1e-6  # relative error granted to the integer program's own bound
_QUICK_ROUNDS = 300  # of column generation, divided by the classes: the work stays bounded


@dataclass(frozen=True, slots=True)
class Answer:
    """Patterns, and what no other answer can undercut."""

    patterns: list[Pattern]
    hourly_micros: int
    bound_micros: int
    proven: bool  # within `PROOF_GAP` of the optimum


def least_cost(packer: Packer, catalog: Catalog, stock: Ints, prove_ms: int = 0) -> Answer:
    """The cheapest configuration found for `stock`, interference left aside."""
    naming = _Naming(packer, catalog, stock)
    incumbent = naming.sized(pack(packer, catalog, stock))
    if not stock.any():
        return Answer(incumbent, 0, 0, proven=True)
    shapes = naming.shapes
    pool = list_patterns(shapes)
    prices = None
    if not pool.complete:
        rounds = min(6, _QUICK_ROUNDS // len(shapes))
        quick = PricingEffort(rounds, 100, 100, columns_per_type=4, gap=1e-3)
        pool, prices = generate(shapes, joined([pool, naming.used(pool.kinds, incumbent)]), quick)
    lp, relaxation = relax(shapes, pool)
    if prices is None:
        prices = proven_prices(relaxation.duals, shapes, pool)
    bound = int(prices @ shapes.amounts)
    columns = Columns(
        pool.hourly_usd, pool.hourly_usd, pool.sets, shapes.amounts, Sense.COVER, lp.columns
    )
    best = best_of(
        columns,
        incumbent,
        lambda state: naming.finish(pool, state),
        cost_of,
        bound,
    )
    if prove_ms and pool.complete and cost_of(best) > bound * (1 + PROOF_GAP):
        reduced = lp.reduced_costs(relaxation.duals)
        best, bound = _prove(naming, pool, best, bound, reduced, prove_ms)
    cost = cost_of(best)
    return Answer(best, cost, bound, proven=cost <= bound * (1 + 2 * PROOF_GAP))


def _prove(
    naming: _Naming,
    pool: Pool,
    best: list[Pattern],
    bound: int,
    reduced: Floats,
    prove_ms: int,
) -> tuple[list[Pattern], int]:
    """The integer program over all patterns that can be in an answer better than `best`.

    A pattern whose reduced cost exceeds the gap would, used once, cost more than the gap holds.
    """
    gap = (cost_of(best) - bound) / MICROS_PER_USD
    lines = np.flatnonzero(reduced <= gap + _BOUND_SLACK)
    need = naming.shapes.amounts
    proof = whole_numbers(
        pool.hourly_usd[lines], pool.sets[lines], need, Sense.COVER, prove_ms, PROOF_GAP
    )
    if np.isfinite(proof.bound):
        proven = int(proof.bound * (1 - _BOUND_SLACK) * MICROS_PER_USD)
        bound = max(bound, min(proven, cost_of(best)))
    if proof.copies is not None:
        copies = np.zeros(len(pool), dtype=np.int64)
        copies[lines] = proof.copies
        found = naming.finish(pool, Rounded(copies, np.zeros_like(need)))
        best = min(best, found, key=cost_of)
    return best, min(bound, cost_of(best))


class _Naming:
    """Between shapes, in which the problem is solved, and classes, in which the answer is given."""

    def __init__(self, packer: Packer, catalog: Catalog, stock: Ints) -> None:
        self._packer = packer
        self._catalog = catalog
        self._stock = stock
        self._sizes: dict[tuple[InstanceType, Members], Pattern] = {}
        present = np.flatnonzero(stock > 0).tolist()
        needs = [
            Need(packer.classes[index].spec, int(stock[index]), int(stock[index]))
            for index in present
        ]
        self.shapes: Shapes = shapes_of(catalog, needs)
        self._shape_of = dict(zip(present, self.shapes.of_need, strict=True))
        self._classes: list[list[int]] = [[] for _ in range(len(self.shapes))]
        for index, shape in zip(present, self.shapes.of_need, strict=True):
            self._classes[shape].append(index)

    def used(self, kinds: Sequence[InstanceType], patterns: Sequence[Pattern]) -> Pool:
        """The patterns of an answer, as far as their types are in `kinds`: where to start from."""
        position = {kind.name: number for number, kind in enumerate(kinds)}
        usable = [pattern for pattern in patterns if pattern.type.name in position]
        sets = np.zeros((len(usable), len(self.shapes)), dtype=np.int64)
        for line, pattern in enumerate(usable):
            for index, count in pattern.members:
                sets[line, self._shape_of[index]] += count
        kind = np.array([position[p.type.name] for p in usable], dtype=np.int64)
        return Pool(tuple(kinds), sets, kind, complete=False)

    def finish(self, pool: Pool, state: Rounded) -> list[Pattern]:
        """Name what was rounded, and let Algorithm 1 place the rest."""
        left = self._stock.copy()
        patterns: list[Pattern] = []
        for line in np.flatnonzero(state.copies):
            kind = pool.kinds[pool.kind[line]]
            patterns += self._name(kind, pool.sets[line], int(state.copies[line]), left)
        if left.any():
            patterns += self.sized(pack(self._packer, self._catalog, left))
        return patterns

    def sized(self, patterns: Sequence[Pattern]) -> list[Pattern]:
        return [self._size(p.type, p.members, p.copies) for p in patterns]

    def _size(self, kind: InstanceType, members: Members, copies: int) -> Pattern:
        """The set on the smallest type that holds it. The same few sets come up in every state."""
        known = self._sizes.get((kind, members))
        if known is None:
            value = self._packer.value(kind.family, members)
            known = right_sized(self._packer, self._catalog, Pattern(kind, members, 1, value))
            self._sizes[kind, members] = known
        return replace(known, copies=copies)

    def _name(self, kind: InstanceType, wanted: Ints, copies: int, left: Ints) -> list[Pattern]:
        """Copies of one set, class by class, as long as `left` lasts; takes from `left`.

        A set that is worth less than its instance (its tasks are slow on that family, or too few
        are left to fill it) is not taken: its tasks are better off elsewhere.
        """
        named: list[Pattern] = []
        while copies:
            members = self._one_copy(wanted, left)
            if not members:
                break
            repeats = min(copies, *(int(left[index]) // count for index, count in members))
            pattern = self._size(kind, members, repeats)
            if pattern.value < pattern.type.hourly_micros * QUANTA_PER_MICRO:
                break
            for index, count in members:
                left[index] -= repeats * count
            named.append(pattern)
            copies -= repeats
        return named

    def _one_copy(self, wanted: Ints, left: Ints) -> Members:
        members: dict[int, int] = {}
        for shape in np.flatnonzero(wanted):
            missing = int(wanted[shape])
            for index in self._classes[shape]:
                taken = min(missing, int(left[index]))
                if taken:
                    members[index] = taken
                    missing -= taken
        return tuple(sorted(members.items()))
