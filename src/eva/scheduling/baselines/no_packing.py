"""No-Packing: every task on an instance of its own, as most cloud cluster managers do it.

A waiting task gets a new instance of its reservation-price type; a task that has an instance stays
there. Nobody is ever slowed and nobody ever moves. It is given no oracle knowledge.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eva.model.oracle import Knowledge
from eva.model.plan import ClusterPlan, Decision
from eva.model.snapshot import ClusterSnapshot
from eva.scheduling.baselines.board import Board


@dataclass(frozen=True, slots=True)
class NoPacking:
    name: str = "no-packing"
    knowledge: frozenset[Knowledge] = field(default=frozenset(), init=False)

    def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
        board = Board(snapshot)
        for task in board.waiting:
            board.launch_alone(task)
        return board.plan(Decision(self.name, reason="each task on its cheapest type, alone"))
