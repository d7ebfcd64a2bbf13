"""Synergy: best fit onto the instances there are, else the cheapest that holds the task alone.

Mohan et al. (OSDI 2022) pack jobs into a cluster of fixed size, each where it leaves the least
behind. Eva's paper makes it cloud-sized (no room anywhere: launch the lowest-cost type that holds
the task) and aware of interference: a task joins others only if that raises their
throughput-normalized reservation price. (Asking also that the whole be worth its instance would
shut the door of every instance that has just lost a task, which is where new ones are needed most:
it raises the bill.) Tasks are taken largest first, as in Synergy, and never move. It is given no
oracle knowledge; what it knows of interference is what was observed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eva.model.oracle import Knowledge
from eva.model.plan import ClusterPlan, Decision
from eva.model.snapshot import ClusterSnapshot, TaskView
from eva.scheduling.baselines.board import Board, Place


@dataclass(frozen=True, slots=True)
class Synergy:
    name: str = "synergy"
    knowledge: frozenset[Knowledge] = field(default=frozenset(), init=False)

    def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
        board = Board(snapshot)
        for task in sorted(board.waiting, key=_largest_first):
            place = _best_fit(board, task)
            if place is None:
                board.launch_alone(task)
            else:
                place.add(task)
        return board.plan(Decision(self.name, reason="best fit, never moving a task"))


def _largest_first(task: TaskView) -> tuple[object, ...]:
    demand = task.spec.demand.default or task.spec.demand.per_family[0][1]
    return (*(-amount for amount in demand), task.id)


def _best_fit(board: Board, task: TaskView) -> Place | None:
    """Of the places that gain by the task, the one that it leaves fullest; then the oldest."""
    fitting = [place for place in board.places if place.has_room_for(task)]
    for place in sorted(fitting, key=lambda place: -place.fullness_with(task)):
        if _gains(board, place, task):
            return place
    return None


def _gains(board: Board, place: Place, task: TaskView) -> bool:
    together = board.worth_quanta([*place.tasks, task], place.type)
    return together > board.worth_quanta(place.tasks, place.type)
