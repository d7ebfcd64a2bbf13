"""From a fractional mix of sets to whole copies of them.

The whole part of the relaxation is taken first: with hundreds of tasks that is most of the answer.
What is left is small, and is rounded by a *dive*: solve again for what is left, take its whole
part, or else one copy of the set that the relaxation wants most, and repeat. Every state on the
way is offered to the caller, who finishes it with Algorithm 1 and keeps the best: the floor alone
is the first such state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import highspy
import numpy as np
import numpy.typing as npt

from eva.scheduling.exact.lp import Floats, Ints, PoolLp, Sense, model, quiet_solver

_WHOLE = 1e-6  # closer to a whole number than this is one
_MOST_ROUNDS = 50  # a dive ends far earlier; the rest is left to the caller


@dataclass(frozen=True, slots=True, eq=False)
class Rounded:
    """Copies per line of the pool, and what of the need is still open.

    `at_least` is what the objective cannot fall below from the state before this one.
    """

    copies: Ints
    left: Ints
    at_least: float = -math.inf


def dive(lp: PoolLp, costs: Floats, sets: Ints, need: Ints) -> Iterator[Rounded]:
    """States on the way down, the last of which leaves nothing that the pool could still do."""
    copies = np.zeros(len(sets), dtype=np.int64)
    left = need.copy()
    for _ in range(_MOST_ROUNDS):
        if not left.any():
            return
        lp.change_need(left.astype(np.float64))
        relaxed = lp.solve()
        amounts = relaxed.amounts
        at_least = float(copies @ costs) + relaxed.objective
        wanted = np.zeros(len(sets), dtype=np.int64)
        wanted[lp.columns] = np.floor(amounts + _WHOLE)
        if not wanted.any():
            line = _one_more(lp, costs, sets, left, amounts)
            if line is None:
                return
            wanted[line] = 1
        copies += wanted
        left = np.maximum(left - wanted @ sets, 0)
        yield Rounded(copies.copy(), left, at_least)


def _one_more(lp: PoolLp, costs: Floats, sets: Ints, left: Ints, amounts: Floats) -> int | None:
    """The set that is wanted most; in packing of those that fit, and else the best that fits."""
    wanted: npt.NDArray[np.bool_] = amounts > _WHOLE
    if lp.sense is Sense.COVER:
        return int(lp.columns[amounts.argmax()]) if wanted.any() else None
    fits = np.asarray((sets <= left).all(axis=1))
    wanted = wanted & fits[lp.columns]
    if wanted.any():
        return int(lp.columns[np.where(wanted, amounts, -1.0).argmax()])
    gains = np.where(fits, -costs, 0.0)
    return int(gains.argmax()) if gains.max() > 0 else None


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """What the integer program ended with. `copies` is None if time ran out before any answer."""

    copies: Ints | None
    bound: float


def whole_numbers(
    costs: Floats,
    sets: Ints,
    need: Ints,
    sense: Sense,
    time_limit_ms: int,
    gap: float,
) -> Proof:
    """The integer program over the given lines.

    The limit is wall-clock and may pass before there is any answer: callers hold one already.
    """
    solver = quiet_solver()
    solver.setOptionValue("time_limit", time_limit_ms / 1000)
    solver.setOptionValue("mip_rel_gap", gap)
    program = model(costs, sets.astype(np.float64), need.astype(np.float64), sense)
    program.integrality_ = [highspy.HighsVarType.kInteger] * len(costs)
    solver.passModel(program)
    solver.run()
    info = solver.getInfo()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Proof(None, info.mip_dual_bound)
    values = np.array(solver.getSolution().col_value)
    return Proof(np.rint(values).astype(np.int64), info.mip_dual_bound)
