"""The policy of least hourly cost: patterns, their relaxation, rounding, and a proof if asked for.

Without interference (`Valuation(interference=False)`) this is variable-sized vector bin packing,
and the answer is within a fraction of a percent of the bound. With interference the objective is
still cost alone, and cost alone would pile tasks on each other whatever that does to them. The
guard: only sets whose worth at the throughput expected of them is at least their price are
admitted, and a pair that nobody has measured counts doubly slowed (see `small_sets`). Such sets
are small, so all up to four tasks are listed; larger ones come from Algorithm 1 only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eva.model.catalog import Catalog
from eva.model.oracle import Knowledge
from eva.model.plan import ClusterPlan, Decision
from eva.model.snapshot import ClusterSnapshot
from eva.model.units import format_usd
from eva.scheduling.exact.covering import Answer, least_cost
from eva.scheduling.exact.lp import Ints
from eva.scheduling.exact.net_value import guarded_least_cost
from eva.scheduling.packing import Packer, Pattern
from eva.scheduling.reconfiguration import full_reconfiguration
from eva.scheduling.situation import assess
from eva.scheduling.valuation import Valuation


@dataclass(frozen=True)
class OptimalPolicy:
    """Least hourly cost. `prove_ms` above 0 spends up to that long on the integer program."""

    name: str = "optimal"
    valuation: Valuation = field(default_factory=Valuation)
    prove_ms: int = 0
    doubt: float = 2.0
    most_tasks: int = 4
    knowledge: frozenset[Knowledge] = field(default=frozenset(), init=False)

    def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
        situation = assess(snapshot, self.valuation)
        reasons: list[str] = []

        def packing(packer: Packer, catalog: Catalog, stock: Ints) -> list[Pattern]:
            answer = self._answer(packer, catalog, stock)
            reasons.append(_reason(answer))
            return answer.patterns

        instances = full_reconfiguration(situation, packing)
        decision = Decision("least cost", reason="; ".join(reasons))
        return ClusterPlan(instances, situation.unplaceable, decision)

    def _answer(self, packer: Packer, catalog: Catalog, stock: Ints) -> Answer:
        if packer.anyone_is_slowed():
            return guarded_least_cost(packer, catalog, stock, self.doubt, self.most_tasks)
        return least_cost(packer, catalog, stock, self.prove_ms)


def _reason(answer: Answer) -> str:
    cost, bound = format_usd(answer.hourly_micros, 4), format_usd(answer.bound_micros, 4)
    how = "proven optimal" if answer.proven else "not proven optimal"
    return f"what had to be placed costs {cost} an hour, no less than {bound} is possible ({how})"
