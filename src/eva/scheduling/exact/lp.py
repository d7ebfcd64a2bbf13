"""Linear programs over sets of tasks, kept small: columns enter only when their price calls for it.

Two problems share one form. *Covering*: the cheapest fractional mix of sets that hosts every task
(`sets @ x >= need`). *Packing*: the most valuable mix that uses no task twice (`<=`, with costs
that are negative values). HiGHS gets whole arrays, never one variable at a time: building a model
by the element takes longer than solving it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import highspy
import numpy as np
import numpy.typing as npt

from eva.model.errors import InvariantError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ENTERING = 40  # columns added per round of column generation
_TOLERANCE = 1e-9  # dollars; smaller gains are rounding
_SCALE_ABOVE = 1e6  # needs beyond this (durations in ms) are scaled down for the solver's sake


class Sense(Enum):
    """What the rows ask: at least the need (covering) or at most (packing)."""

    COVER = "cover"
    PACK = "pack"


@dataclass(frozen=True, slots=True)
class Solution:
    """`amounts` per column; `duals` per row. Both are floats and trusted by nobody as proof."""

    objective: float
    amounts: Floats
    duals: Floats


def quiet_solver(threads: int = 1) -> highspy.Highs:
    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # its constructor has no annotations
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", threads)
    return solver


def model(costs: Floats, sets: Floats, need: Floats, sense: Sense) -> highspy.HighsLp:
    """A model of non-negative columns; `sets` has one line per column."""
    columns, rows = sets.shape
    unbounded = np.full(rows, highspy.kHighsInf)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, rows
    lp.col_cost_ = costs
    lp.col_lower_ = np.zeros(columns)
    lp.col_upper_ = np.full(columns, highspy.kHighsInf)
    lp.row_lower_, lp.row_upper_ = (need, unbounded) if sense is Sense.COVER else (-unbounded, need)
    line, row = np.nonzero(sets)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = _starts(sets, closed=True)
    lp.a_matrix_.index_ = row.astype(np.int32)
    lp.a_matrix_.value_ = sets[line, row]
    return lp


class SetLp:
    """One linear program that grows by columns and whose need may change between solutions."""

    def __init__(self, need: Floats, sense: Sense) -> None:
        self.sense = sense
        self._solver = quiet_solver()
        self._solver.setOptionValue("presolve", "off")
        self._scale = 1.0
        empty = np.zeros((0, len(need)))
        self._solver.passModel(model(np.zeros(0), empty, self._scaled(need), sense))

    def add(self, costs: Floats, sets: Floats) -> None:
        line, row = np.nonzero(sets)
        self._solver.addCols(
            len(costs),
            costs,
            np.zeros(len(costs)),
            np.full(len(costs), highspy.kHighsInf),
            len(line),
            _starts(sets, closed=False),
            row.astype(np.int32),
            sets[line, row],
        )

    def change_need(self, need: Floats) -> None:
        for row, amount in enumerate(self._scaled(need)):
            if self.sense is Sense.COVER:
                self._solver.changeRowBounds(row, amount, highspy.kHighsInf)
            else:
                self._solver.changeRowBounds(row, -highspy.kHighsInf, amount)

    def solve(self) -> Solution:
        self._solver.run()
        status = self._solver.getModelStatus()
        if status == highspy.HighsModelStatus.kModelEmpty:  # nothing is needed
            return Solution(0.0, np.zeros(self._solver.getNumCol()), np.zeros(0))
        if status != highspy.HighsModelStatus.kOptimal:
            raise InvariantError(
                f"a covering program that always has a solution ended as "
                f"{self._solver.modelStatusToString(status)}; report the input"
            )
        found = self._solver.getSolution()
        return Solution(
            self._solver.getInfo().objective_function_value * self._scale,
            np.array(found.col_value) * self._scale,
            np.array(found.row_dual),
        )

    def _scaled(self, need: Floats) -> Floats:
        largest = float(need.max(initial=0.0))
        self._scale = largest / _SCALE_ABOVE if largest > _SCALE_ABOVE else 1.0
        return need / self._scale


class PoolLp:
    """The program over a whole pool of columns, of which only those that pay are in the solver."""

    def __init__(
        self,
        costs: Floats,
        sets: Floats,
        need: Floats,
        sense: Sense,
        start: Ints,
    ) -> None:
        self.sense = sense
        self._costs = costs
        self._sets = sets
        self.columns = start  # positions in the pool, in the order in which the solver has them
        self._lp = SetLp(need, sense)
        self._lp.add(costs[start], sets[start])

    def change_need(self, need: Floats) -> None:
        self._lp.change_need(need)

    def solve(self) -> Solution:
        """Optimal over the whole pool; `amounts` follow `columns`."""
        while True:
            found = self._lp.solve()
            reduced = self.reduced_costs(found.duals)
            entering = np.flatnonzero(reduced < -_TOLERANCE)
            if not len(entering):
                return found
            if len(entering) > _ENTERING:
                best = np.argpartition(reduced[entering], _ENTERING)[:_ENTERING]
                entering = np.sort(entering[best])
            fresh = entering[~np.isin(entering, self.columns)]
            if not len(fresh):  # the solver's own tolerance is wider than ours
                return found
            self._lp.add(self._costs[fresh], self._sets[fresh])
            self.columns = np.concatenate([self.columns, fresh])

    def reduced_costs(self, duals: Floats) -> Floats:
        reduced: Floats = self._costs - self._sets @ duals
        return reduced


def _starts(sets: Floats, *, closed: bool) -> npt.NDArray[np.int32]:
    ends = np.cumsum((sets != 0).sum(axis=1))
    starts = np.concatenate([[0], ends if closed else ends[:-1]])
    return starts.astype(np.int32)[: len(sets) + (1 if closed else 0)]
