"""Eva's policy: work out several reconfigurations and take the one that pays.

At every round with news, the candidates are weighed by

    S * D - M

where S is what a plan saves per hour (worth minus cost of every instance), M what it costs once to
get there, and D the time for which the savings are expected to last. Partial reconfiguration is
the one to beat: anything else must be strictly better. Without an arrival or completion since the
last plan there is nothing new to weigh, and only partial reconfiguration runs.

The paper's Eva weighs full (Algorithm 1) against partial. Ours adds full reconfiguration by sets,
which is where most of what it saves beyond the paper comes from; `eva-published` leaves it out.
The ablations of the paper are parameters too: reservation price without interference (Eva-RP),
siblings valued apart (Eva-Single), full or partial reconfiguration alone, another default `t`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum

from eva.model.colocation import ThroughputTable
from eva.model.oracle import Knowledge
from eva.model.plan import Candidate, ClusterPlan, Decision, PlannedInstance
from eva.model.snapshot import ClusterSnapshot
from eva.scheduling.event_rate import estimated_horizon_hours
from eva.scheduling.migration_cost import migration_cost
from eva.scheduling.reconfiguration import (
    full_reconfiguration,
    full_reconfiguration_by_sets,
    partial_reconfiguration,
)
from eva.scheduling.situation import Situation, assess
from eva.scheduling.valuation import Valuation


class Reconfiguration(Enum):
    """The ways to go on. What the controller counts as full is named so in the decision."""

    FULL = "full"
    FULL_BY_SETS = "full by sets"
    PARTIAL = "partial"


_MAKE: dict[Reconfiguration, Callable[[Situation], tuple[PlannedInstance, ...]]] = {
    Reconfiguration.FULL: full_reconfiguration,
    Reconfiguration.FULL_BY_SETS: full_reconfiguration_by_sets,
    Reconfiguration.PARTIAL: partial_reconfiguration,
}

PUBLISHED = (Reconfiguration.PARTIAL, Reconfiguration.FULL)


@dataclass(frozen=True, slots=True)
class _Proposal:
    """One way to go on, with what it saves per hour and costs once."""

    kind: Reconfiguration
    instances: tuple[PlannedInstance, ...]
    summary: Candidate

    def gain(self, horizon_hours: float) -> tuple[float, float]:
        """What adopting it is worth; under an infinite horizon savings decide, then the cost."""
        saving, cost = self.summary.saving_micros, self.summary.migration_micros
        if math.isinf(horizon_hours):
            return saving, -cost
        return saving * horizon_hours - cost, 0.0


class _QuietPlan:
    """The last plan made without news, which depends on tasks, instances and table alone.

    The controller hands out the very same tuples while nothing changes, so identity is enough,
    and most rounds of a long night cost nothing.
    """

    def __init__(self) -> None:
        self._last: tuple[ClusterSnapshot, ClusterPlan] | None = None

    def recall(self, snapshot: ClusterSnapshot) -> ClusterPlan | None:
        if self._last is None or snapshot.statistics.news:
            return None
        seen, plan = self._last
        same = (
            snapshot.tasks is seen.tasks
            and snapshot.instances is seen.instances
            and snapshot.table is seen.table
            and snapshot.catalog is seen.catalog
        )
        return plan if same else None

    def remember(self, snapshot: ClusterSnapshot, plan: ClusterPlan) -> None:
        self._last = None if snapshot.statistics.news else (snapshot, plan)

    def __reduce__(self) -> tuple[type[_QuietPlan], tuple[()]]:
        return (_QuietPlan, ())  # in another process it starts afresh


@dataclass(frozen=True)
class EvaPolicy:
    """The ensemble, or with other parameters one of its ablations.

    `considered` is in order of preference: a later candidate is taken only if strictly better.
    """

    name: str = "eva"
    valuation: Valuation = field(default_factory=Valuation)
    considered: tuple[Reconfiguration, ...] = (*PUBLISHED, Reconfiguration.FULL_BY_SETS)
    default_throughput: float | None = None  # None: as the table says
    knowledge: frozenset[Knowledge] = field(default=frozenset(), init=False)
    _quiet: _QuietPlan = field(default_factory=_QuietPlan, init=False, compare=False)

    def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
        known = self._quiet.recall(snapshot)
        if known is not None:
            return known
        plan = self._plan(snapshot)
        self._quiet.remember(snapshot, plan)
        return plan

    def _plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
        situation = assess(self._seen(snapshot), self.valuation)
        considered = self.considered
        if not snapshot.statistics.news and len(considered) > 1:
            considered = considered[:1]
        proposals = [_propose(kind, situation) for kind in considered]
        horizon = estimated_horizon_hours(snapshot.statistics)
        chosen = max(proposals, key=lambda proposal: proposal.gain(horizon))
        return ClusterPlan(
            chosen.instances,
            situation.unplaceable,
            Decision(
                chosen.kind.value,
                tuple(proposal.summary for proposal in proposals),
                horizon if len(proposals) > 1 else None,
                _reason(self, considered),
            ),
        )

    def _seen(self, snapshot: ClusterSnapshot) -> ClusterSnapshot:
        if self.default_throughput is None:
            return snapshot
        table: ThroughputTable = snapshot.table.with_default(self.default_throughput)
        return replace(snapshot, table=table)


def _propose(kind: Reconfiguration, situation: Situation) -> _Proposal:
    instances = _MAKE[kind](situation)
    cost = migration_cost(instances, situation.tasks, situation.worth)
    return _Proposal(
        kind,
        instances,
        Candidate(
            kind.value,
            hourly_micros=sum(planned.type.hourly_micros for planned in instances),
            saving_micros=sum(planned.saving_micros for planned in instances),
            migration_micros=cost.micros,
            migrated_tasks=len(cost.moved),
            launched_instances=cost.launched,
        ),
    )


def _reason(policy: EvaPolicy, considered: tuple[Reconfiguration, ...]) -> str:
    if len(considered) > 1:
        return "greatest saving over the horizon less the cost of getting there"
    if len(policy.considered) == 1:
        return f"this policy considers {considered[0].value} reconfiguration only"
    return "no job arrived or ended since the last plan"
