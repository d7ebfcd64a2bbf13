"""The integer program of the paper, as it stands there, for a dozen tasks.

As many instances as tasks, each of exactly one type, among them a ghost type of no cost and no
capacity for instances that are not rented; every task on exactly one instance; demand within
capacity, resource by resource; cost minimised. Nothing breaks its symmetries, which is why it
serves as a reference for small inputs and not as a scheduler.

The paper writes one demand per task. Where demand differs by family, the capacity rows are written
once per family and bind only where the instance is of that family.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import highspy
import numpy as np

from eva.model.catalog import Catalog, InstanceType
from eva.model.oracle import Knowledge
from eva.model.plan import ClusterPlan, Decision
from eva.model.snapshot import ClusterSnapshot
from eva.model.units import MICROS_PER_USD
from eva.scheduling.exact.choose import cost_of
from eva.scheduling.exact.lp import Floats, Ints, Sense, model, quiet_solver
from eva.scheduling.packing import CANNOT_RUN, Packer, Pattern, pack
from eva.scheduling.reconfiguration import full_reconfiguration
from eva.scheduling.situation import assess
from eva.scheduling.valuation import Valuation

MOST_TASKS = 16  # beyond this the program is given up on before it is built


@dataclass(frozen=True)
class IlpPolicy:
    """Least cost by the paper's own program; Algorithm 1 where that is too large or too slow.

    Interference is none of the program's concern, so valued or not, it is left aside here.
    """

    name: str = "ilp"
    time_limit_ms: int = 30_000
    knowledge: frozenset[Knowledge] = field(default=frozenset(), init=False)

    def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
        situation = assess(snapshot, Valuation(interference=False))
        reasons: list[str] = []

        def packing(packer: Packer, catalog: Catalog, stock: Ints) -> list[Pattern]:
            held = pack(packer, catalog, stock)
            if int(stock.sum()) > MOST_TASKS:
                reasons.append(f"{int(stock.sum())} tasks are too many for it: Algorithm 1 instead")
                return held
            found = solve(packer, catalog, stock, self.time_limit_ms)
            if found is None or cost_of(found) > cost_of(held):
                reasons.append("no better answer than Algorithm 1's within the time limit")
                return held
            return found

        instances = full_reconfiguration(situation, packing)
        decision = Decision("integer program", reason="; ".join(reasons))
        return ClusterPlan(instances, situation.unplaceable, decision)


def solve(
    packer: Packer, catalog: Catalog, stock: Ints, time_limit_ms: int
) -> list[Pattern] | None:
    """The optimum, or the best found in time; None where there was none in time."""
    tasks = [index for index, count in enumerate(stock) for _ in range(int(count))]
    if not tasks:
        return []
    program = _Program(packer, catalog, tasks)
    solver = quiet_solver()
    solver.setOptionValue("time_limit", time_limit_ms / 1000)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.passModel(program.as_model())
    solver.run()
    if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    return program.patterns(np.array(solver.getSolution().col_value) > 0.5)


class _Program:
    """Columns: x of every instance and type (the ghost last), then y of every instance and task.

    Every row is written as `at most`; an equation is two of them.
    """

    def __init__(self, packer: Packer, catalog: Catalog, tasks: Sequence[int]) -> None:
        self._packer = packer
        self._kinds: tuple[InstanceType, ...] = catalog.types
        self._tasks = tasks
        self._types = len(self._kinds) + 1
        self._count = len(tasks)
        self._width = self._count * (self._types + self._count)
        self._rows: list[Floats] = []
        self._limits: list[float] = []

    def as_model(self) -> highspy.HighsLp:
        for task in range(self._count):
            self._equal_one([self._y(i, task) for i in range(self._count)])
        for i in range(self._count):
            self._equal_one([self._x(i, k) for k in range(self._types)])
            for family in sorted({kind.family for kind in self._kinds}):
                self._capacity(i, family)
            self._nothing_on_a_ghost(i)
        prices = [kind.hourly_micros / MICROS_PER_USD for kind in self._kinds]
        costs = np.zeros(self._width)
        costs[: self._count * self._types] = np.tile([*prices, 0.0], self._count)
        lp = model(costs, np.array(self._rows).T, np.array(self._limits), Sense.PACK)
        lp.col_upper_ = np.ones(self._width)
        lp.integrality_ = [highspy.HighsVarType.kInteger] * self._width
        return lp

    def patterns(self, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[Pattern]:
        """One pattern per rented instance that has tasks."""
        found: list[Pattern] = []
        for i in range(self._count):
            here = [t for n, t in enumerate(self._tasks) if chosen[self._y(i, n)]]
            for k, kind in enumerate(self._kinds):
                if chosen[self._x(i, k)] and here:
                    members = tuple((index, here.count(index)) for index in sorted(set(here)))
                    value = self._packer.value(kind.family, members)
                    found.append(Pattern(kind, members, 1, value))
        return found

    def _x(self, instance: int, kind: int) -> int:
        return instance * self._types + kind

    def _y(self, instance: int, task: int) -> int:
        return self._count * self._types + instance * self._count + task

    def _at_most(self, entries: dict[int, float], limit: float) -> None:
        row = np.zeros(self._width)
        for column, value in entries.items():
            row[column] = value
        self._rows.append(row)
        self._limits.append(limit)

    def _equal_one(self, columns: list[int]) -> None:
        self._at_most(dict.fromkeys(columns, 1.0), 1.0)
        self._at_most(dict.fromkeys(columns, -1.0), -1.0)

    def _capacity(self, instance: int, family: str) -> None:
        """Demand within capacity on this family; tasks that do not run on it stay off it."""
        of_family = [k for k, kind in enumerate(self._kinds) if kind.family == family]
        known = self._packer.on(family)
        for task, index in enumerate(self._tasks):
            if known.gpus[index] == CANNOT_RUN:
                here = dict.fromkeys((self._x(instance, k) for k in of_family), 1.0)
                self._at_most({**here, self._y(instance, task): 1.0}, 1.0)
        for resource, amounts in enumerate((known.gpus, known.cpu_millis, known.memory_mib)):
            needed = [0 if amounts[t] == CANNOT_RUN else int(amounts[t]) for t in self._tasks]
            everything = max(1, sum(needed))  # in units of which the row is written
            row = {
                self._y(instance, task): amount / everything for task, amount in enumerate(needed)
            }
            for k in of_family:
                row[self._x(instance, k)] = 1.0 - self._kinds[k].capacity[resource] / everything
            self._at_most(row, 1.0)

    def _nothing_on_a_ghost(self, instance: int) -> None:
        row = {self._y(instance, task): 1.0 for task in range(self._count)}
        row[self._x(instance, self._types - 1)] = float(self._count)
        self._at_most(row, float(self._count))
