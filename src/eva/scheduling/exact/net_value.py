"""Greatest hourly value less cost: which sets of tasks are worth putting together at all.

The paper minimises cost and lets worth decide only whether an instance is kept. Here worth itself
is maximised: the sum over instances of what their tasks are worth at the throughput expected of
them, less the price. A task alone on the type that sets its reservation price contributes nothing,
so only sets with a positive contribution are chosen, no task in two of them (set packing), and
what is left over goes through Algorithm 1, which at worst puts it alone.

The bound is the relaxation of the packing over all sets up to the size limit, on its dual side:
a price per task such that no set contributes more than its tasks' prices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from eva.model.catalog import Catalog
from eva.model.oracle import Knowledge
from eva.model.plan import ClusterPlan, Decision
from eva.model.snapshot import ClusterSnapshot
from eva.model.units import MICROS_PER_USD, format_usd
from eva.scheduling.exact.bounds import lower_bound
from eva.scheduling.exact.choose import Columns, best_of, cost_of, net_value_of
from eva.scheduling.exact.covering import Answer
from eva.scheduling.exact.lp import Ints, PoolLp, Sense
from eva.scheduling.exact.patterns import Need
from eva.scheduling.exact.rounding import Rounded, whole_numbers
from eva.scheduling.exact.small_sets import SmallSets, doubting, list_small_sets
from eva.scheduling.packing import Packer, Pattern, pack
from eva.scheduling.reconfiguration import full_reconfiguration
from eva.scheduling.situation import assess
from eva.scheduling.valuation import QUANTA_PER_MICRO, Valuation

SOLVER_MS = 100
_MOST_LINES = 2_000
_PROOF_GAP = 1e-4


@dataclass(frozen=True, slots=True)
class NetValueBound:
    """No choice of disjoint sets up to the size limit is worth more than this above its cost.

    `complete` is false when sets were too many to look at all of them; it then bounds the choice
    among those that were, and says nothing about the others.
    """

    hourly_micros: int
    duals_micros: tuple[int, ...]  # per class of the packer
    complete: bool


@dataclass(frozen=True, slots=True)
class NetValueAnswer:
    patterns: list[Pattern]
    net_micros: int
    bound: NetValueBound


@dataclass(frozen=True)
class NetValuePolicy:
    """Greatest hourly value less cost, over sets of at most `most_tasks` tasks."""

    name: str = "net-value"
    valuation: Valuation = field(default_factory=Valuation)
    doubt: float = 2.0
    most_tasks: int = 4
    knowledge: frozenset[Knowledge] = field(default=frozenset(), init=False)

    def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
        situation = assess(snapshot, self.valuation)
        reasons: list[str] = []

        def packing(packer: Packer, catalog: Catalog, stock: Ints) -> list[Pattern]:
            answer = greatest_net_value(packer, catalog, stock, self.doubt, self.most_tasks)
            reasons.append(_reason(answer, self.most_tasks))
            return answer.patterns

        instances = full_reconfiguration(situation, packing)
        decision = Decision("greatest net value", reason="; ".join(reasons))
        return ClusterPlan(instances, situation.unplaceable, decision)


def _reason(answer: NetValueAnswer, most_tasks: int) -> str:
    worth = f"worth {format_usd(answer.net_micros, 4)} an hour more than it costs"
    if not answer.bound.complete:
        return f"{worth}; there were too many sets to look at all of them"
    bound = format_usd(answer.bound.hourly_micros, 4)
    return f"{worth}; sets of up to {most_tasks} tasks allow at most {bound}"


def greatest_net_value(
    packer: Packer,
    catalog: Catalog,
    stock: Ints,
    doubt: float = 2.0,
    most_tasks: int = 4,
    solver_ms: int = SOLVER_MS,
) -> NetValueAnswer:
    """Disjoint sets from `stock` of the greatest worth less cost, and the bound on it."""
    cautious = doubting(packer, doubt)
    listed = list_small_sets(cautious, catalog, stock, most_tasks)
    gains = listed.worth - listed.hourly_micros
    lines = np.flatnonzero(gains > 0)
    listed, gains = listed.pick(lines), gains[lines]
    columns = _packing_columns(listed, gains, stock)
    bound = _bound(columns, gains, complete=listed.complete)
    finish = _Finisher(cautious, catalog, listed)

    def objective(found: Sequence[Pattern]) -> int:
        return -(net_value_of(found) // QUANTA_PER_MICRO)

    held = pack(cautious, catalog, stock)
    held = best_of(columns, held, finish, objective, -bound.hourly_micros)
    if objective(held) > -bound.hourly_micros:
        held = min(held, _by_program(columns, finish, held, solver_ms), key=objective)
    return NetValueAnswer(held, net_value_of(held) // QUANTA_PER_MICRO, bound)


def guarded_least_cost(
    packer: Packer,
    catalog: Catalog,
    stock: Ints,
    doubt: float,
    most_tasks: int,
) -> Answer:
    """Least cost among sets that are worth their price at the throughput expected of them.

    A saving is measured against everyone alone; what a set saves counts without interference,
    whether it is admitted with it. The bound is that of least cost without any interference.
    """
    cautious = doubting(packer, doubt)
    listed = list_small_sets(cautious, catalog, stock, most_tasks)
    gains = listed.alone - listed.hourly_micros
    lines = np.flatnonzero((gains > 0) & (listed.worth >= listed.hourly_micros))
    listed, gains = listed.pick(lines), gains[lines]
    present = [
        Need(group.spec, int(count), int(count))
        for group, count in zip(packer.classes, stock, strict=True)
        if count
    ]
    bound = lower_bound(catalog, present).hourly_micros
    all_alone = sum(
        group.price.hourly_micros * int(count)
        for group, count in zip(packer.classes, stock, strict=True)
    )
    columns, finish = _packing_columns(listed, gains, stock), _Finisher(cautious, catalog, listed)
    patterns = best_of(
        columns,
        pack(cautious, catalog, stock),
        finish,
        lambda found: cost_of(found) - all_alone,
        bound - all_alone,
    )
    if cost_of(patterns) > bound:
        patterns = min(patterns, _by_program(columns, finish, patterns, SOLVER_MS), key=cost_of)
    cost = cost_of(patterns)
    return Answer(patterns, cost, min(bound, cost), proven=cost <= bound)


def _by_program(
    columns: Columns, finish: _Finisher, held: list[Pattern], solver_ms: int
) -> list[Pattern]:
    """The same choice by the integer program, where its lines are few; `held` without an answer.

    For fifty tasks rounding matters, and the program takes some 10 ms. Its limit is wall-clock and
    there for the day on which it takes longer.
    """
    if not 0 < len(columns.costs) <= _MOST_LINES or not solver_ms:
        return held
    proof = whole_numbers(
        columns.costs, columns.sets, columns.need, columns.sense, solver_ms, _PROOF_GAP
    )
    if proof.copies is None:
        return held
    return finish(Rounded(proof.copies, columns.need - proof.copies @ columns.sets))


def _packing_columns(listed: SmallSets, gains: Ints, stock: Ints) -> Columns:
    best = np.sort(np.argsort(-gains, kind="stable")[: 5 * len(stock)])
    return Columns(
        -gains / MICROS_PER_USD,
        listed.hourly_micros / MICROS_PER_USD,
        listed.sets,
        stock,
        Sense.PACK,
        best,
    )


class _Finisher:
    """Name what was chosen, and let Algorithm 1 place the rest."""

    def __init__(self, packer: Packer, catalog: Catalog, listed: SmallSets) -> None:
        self._packer = packer
        self._catalog = catalog
        self._listed = listed

    def __call__(self, state: Rounded) -> list[Pattern]:
        chosen = np.flatnonzero(state.copies)
        patterns = [self._listed.pattern(int(i), int(state.copies[i])) for i in chosen]
        if state.left.any():
            patterns += pack(self._packer, self._catalog, state.left)
        return patterns


def _bound(columns: Columns, gains: Ints, *, complete: bool) -> NetValueBound:
    """Prices from the relaxation, rounded up and raised until no set contributes more, exactly."""
    if not len(gains):
        return NetValueBound(0, (0,) * len(columns.need), complete)
    sets = columns.sets.astype(np.float64)
    need = columns.need.astype(np.float64)
    found = PoolLp(columns.costs, sets, need, columns.sense, columns.start).solve()
    prices = np.ceil(np.maximum(-found.duals, 0.0) * MICROS_PER_USD).astype(np.int64)
    priced = columns.sets @ prices
    while (priced < gains).any():
        short = np.flatnonzero(priced < gains)
        lacking = int((gains[short] - priced[short]).max())
        members = (columns.sets[short] > 0).any(axis=0)
        prices[members] += lacking
        priced = columns.sets @ prices
    total = int(prices @ columns.need)
    return NetValueBound(total, tuple(prices.tolist()), complete)
