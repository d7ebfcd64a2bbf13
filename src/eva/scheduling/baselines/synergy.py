"""Synergy: best fit onto the instances there are, else the cheapest that holds the task alone.

Mohan et al. (OSDI 2022) pack jobs into a cluster of fixed size, each where it leaves the least
behind. Eva's paper makes it cloud-sized (no room anywhere: launch the lowest-cost type that holds
the task) and aware of interference: a task joins others only if that raises their
throughput-normalized reservation price, and the whole is then worth its instance. Tasks are taken
largest first, as in Synergy, and never move.

How well a place fits is not spelled out for the cloud: here it is what CPU is left over, the
resource that runs out first beside GPUs, then memory, then GPUs. (The share left, summed over all
resources, comes to within one percent of the same bill on the full trace of the paper.)

It is given no oracle knowledge; what it knows of interference is what was observed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eva.model.oracle import Knowledge
from eva.model.plan import ClusterPlan, Decision
from eva.model.resources import Resources
from eva.model.snapshot import ClusterSnapshot, TaskView
from eva.scheduling.baselines.board import Board, Place
from eva.scheduling.valuation import quanta


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
    """Of the places that gain by the task, the one with the least to spare; then the oldest."""
    fitting = [(place.free_after(task), place) for place in board.places]
    snug = [(_to_spare(left), place) for left, place in fitting if left is not None]
    for _, place in sorted(snug, key=lambda pair: pair[0]):
        if _gains(board, place, task):
            return place
    return None


def _to_spare(left: Resources) -> tuple[int, int, int]:
    return left.cpu_millis, left.memory_mib, left.gpus


def _gains(board: Board, place: Place, task: TaskView) -> bool:
    together = board.worth_quanta([*place.tasks, task], place.type)
    return together > board.worth_quanta(place.tasks, place.type) and together >= quanta(
        place.type.hourly_micros
    )
