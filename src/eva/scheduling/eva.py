"""Eva's policy: plan fully, plan partially, and take the plan that pays.

At every round both reconfigurations are worked out, and the full one is adopted if

    S_F * D - M_F  >  S_P * D - M_P

where S is what a plan saves per hour (worth minus cost of every instance), M what it costs once to
get there, and D the time for which the savings are expected to last.

The ablations of the paper are parameters here: reservation price without interference (Eva-RP),
siblings valued apart (Eva-Single), full or partial reconfiguration alone, another default `t`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum

from eva.model.oracle import Knowledge
from eva.model.plan import Candidate, ClusterPlan, Decision, PlannedInstance
from eva.model.snapshot import ClusterSnapshot
from eva.scheduling.event_rate import estimated_horizon_hours
from eva.scheduling.migration_cost import migration_cost
from eva.scheduling.reconfiguration import full_reconfiguration, partial_reconfiguration
from eva.scheduling.situation import Situation, assess
from eva.scheduling.valuation import Valuation


class Mode(Enum):
    ENSEMBLE = "ensemble"
    FULL_ONLY = "full only"
    PARTIAL_ONLY = "partial only"


FULL, PARTIAL = "full", "partial"

_RECONFIGURATIONS: dict[str, Callable[[Situation], tuple[PlannedInstance, ...]]] = {
    FULL: full_reconfiguration,
    PARTIAL: partial_reconfiguration,
}

_CONSIDERED = {
    Mode.ENSEMBLE: (FULL, PARTIAL),
    Mode.FULL_ONLY: (FULL,),
    Mode.PARTIAL_ONLY: (PARTIAL,),
}


@dataclass(frozen=True, slots=True)
class _Proposal:
    """One way to go on, with what it saves per hour and costs once."""

    instances: tuple[PlannedInstance, ...]
    summary: Candidate

    def gain(self, horizon_hours: float) -> tuple[float, float]:
        """What adopting it is worth; under an infinite horizon savings decide, then the cost."""
        saving, cost = self.summary.saving_micros, self.summary.migration_micros
        if math.isinf(horizon_hours):
            return saving, -cost
        return saving * horizon_hours - cost, 0.0


@dataclass(frozen=True)
class EvaPolicy:
    """The ensemble, or with other parameters one of its ablations."""

    name: str = "eva"
    valuation: Valuation = field(default_factory=Valuation)
    mode: Mode = Mode.ENSEMBLE
    default_throughput: float | None = None  # None: as the table says
    knowledge: frozenset[Knowledge] = field(default=frozenset(), init=False)

    def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
        situation = self._assess(snapshot)
        proposals = {name: _propose(name, situation) for name in _CONSIDERED[self.mode]}
        horizon = estimated_horizon_hours(snapshot.statistics)
        chosen = _choose(proposals, horizon)
        return ClusterPlan(
            proposals[chosen].instances,
            situation.unplaceable,
            _explain(chosen, proposals, horizon),
        )

    def _assess(self, snapshot: ClusterSnapshot) -> Situation:
        if self.default_throughput is not None:
            snapshot = replace(snapshot, table=snapshot.table.with_default(self.default_throughput))
        return assess(snapshot, self.valuation)


def _propose(name: str, situation: Situation) -> _Proposal:
    instances = _RECONFIGURATIONS[name](situation)
    cost = migration_cost(instances, situation.tasks, situation.worth)
    return _Proposal(
        instances,
        Candidate(
            name,
            hourly_micros=sum(planned.type.hourly_micros for planned in instances),
            saving_micros=sum(planned.saving_micros for planned in instances),
            migration_micros=cost.micros,
            migrated_tasks=len(cost.moved),
            launched_instances=cost.launched,
        ),
    )


def _choose(proposals: dict[str, _Proposal], horizon_hours: float) -> str:
    """The full proposal only if it is strictly better: disruption needs a reason."""
    if PARTIAL not in proposals:
        return FULL
    if FULL not in proposals:
        return PARTIAL
    full, partial = proposals[FULL], proposals[PARTIAL]
    return FULL if full.gain(horizon_hours) > partial.gain(horizon_hours) else PARTIAL


def _explain(chosen: str, proposals: dict[str, _Proposal], horizon_hours: float) -> Decision:
    candidates = tuple(proposal.summary for proposal in proposals.values())
    if len(candidates) == 1:
        return Decision(chosen, candidates, reason=f"only {chosen} reconfiguration is considered")
    return Decision(chosen, candidates, horizon_hours)
