"""Stratus: put together what ends together, so that whole instances fall free.

Chung et al. (SoCC 2018). Remaining run times fall into bins that double in width; an instance is
in the bin of its longest task. Each round:

- *Packing.* Waiting tasks, longest first, join an instance of their own bin, the one closest in
  remaining time. Failing that one of a longer bin, nearest first (up-packing: the instance stays
  for its longer tasks anyway). Failing that one of a shorter bin, nearest first (down-packing: the
  instance is thereby promoted).
- *Scale-out.* What is left is taken bin by bin, longest first. Candidates are the first one, two,
  three, ... tasks of the bin on every type that holds them; the lowest relative cost wins, that is
  the price of the instance over what its tasks would cost apart.
- *Scale-in.* An instance that costs more than `scale_in_ratio` times what its tasks would cost
  apart is badly underused. It is cleared if all its tasks find room on other instances of their
  own or a longer bin.

It looks at run times and prices only, never at interference. It is given one piece of oracle
knowledge: the remaining run time of every job at full throughput.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from eva.model.catalog import InstanceType
from eva.model.oracle import Knowledge
from eva.model.plan import ClusterPlan, Decision
from eva.model.snapshot import ClusterSnapshot, TaskView
from eva.scheduling.baselines.board import Board, Place

SHORTEST_BIN_MS = 60_000  # everything below a minute is alike


@dataclass(frozen=True, slots=True)
class Stratus:
    name: str = "stratus"
    scale_in_ratio: float = 2.0
    knowledge: frozenset[Knowledge] = field(
        default=frozenset({Knowledge.REMAINING_TIME}), init=False
    )

    def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
        board = Board(snapshot)
        round_ = _Round(board)
        unpacked = [task for task in round_.longest_first(board.waiting) if not round_.pack(task)]
        round_.scale_out(unpacked)
        round_.scale_in(self.scale_in_ratio)
        return board.plan(Decision(self.name, reason="tasks that end together, together"))


def runtime_bin(remaining_ms: int) -> int:
    """0 below a minute, 1 below two, 2 below four, ..."""
    return (remaining_ms // SHORTEST_BIN_MS).bit_length()


class _Round:
    """Remaining times, looked up once, and the three steps that use them."""

    def __init__(self, board: Board) -> None:
        self._board = board
        oracle = board.snapshot.oracle
        self._remaining = {
            task.id: max(0, oracle.remaining_ms(task.job)) for task in board.snapshot.tasks
        }

    def longest_first(self, tasks: Iterable[TaskView]) -> list[TaskView]:
        return sorted(tasks, key=lambda task: (-self._remaining[task.id], task.id))

    def _left_ms(self, place: Place) -> int:
        return max((self._remaining[task.id] for task in place.tasks), default=0)

    def pack(self, task: TaskView) -> bool:
        place = self._place_for(task, self._board.places)
        if place is None:
            return False
        place.add(task)
        return True

    def _place_for(
        self, task: TaskView, places: Iterable[Place], *, down: bool = True
    ) -> Place | None:
        """The best of the places with room: own bin, then longer ones, then shorter ones."""
        mine_ms = self._remaining[task.id]
        mine = runtime_bin(mine_ms)
        best: Place | None = None
        best_rank = (3, 0)
        for place in places:
            if not place.tasks or not place.has_room_for(task):
                continue
            theirs_ms = self._left_ms(place)
            theirs = runtime_bin(theirs_ms)
            direction = 0 if theirs == mine else 1 if theirs > mine else 2
            rank = (direction, abs(theirs_ms - mine_ms))
            if rank < best_rank and (down or direction < 2):
                best, best_rank = place, rank
        return best

    def scale_out(self, tasks: list[TaskView]) -> None:
        """Launch for the longest bin first; what is shorter may then join what was launched."""
        waiting = tasks
        while waiting:
            longest = runtime_bin(self._remaining[waiting[0].id])
            peers = [task for task in waiting if runtime_bin(self._remaining[task.id]) == longest]
            kind, count = self._cheapest_group(peers)
            self._board.launch(kind, peers[:count])
            taken = {task.id for task in peers[:count]}
            waiting = [task for task in waiting if task.id not in taken and not self.pack(task)]

    def _cheapest_group(self, peers: Sequence[TaskView]) -> tuple[InstanceType, int]:
        """The type, and how many of the longest tasks on it, at the lowest relative cost."""
        first = self._board.price(peers[0])
        best, best_ratio = (first.type, 1), 1.0
        for kind in reversed(self._board.snapshot.catalog.types):
            place, apart_micros = Place(kind, None), 0
            for count, task in enumerate(peers, start=1):
                if not place.has_room_for(task):
                    break
                place.add(task)
                apart_micros += self._board.price(task).hourly_micros
                ratio = kind.hourly_micros / apart_micros
                if ratio < best_ratio:
                    best, best_ratio = (kind, count), ratio
        return best

    def scale_in(self, ratio: float) -> None:
        """Clear badly underused instances, worst first, where all tasks find room elsewhere."""
        cost = self._board.relative_cost
        for place in sorted(self._board.places, key=cost, reverse=True):
            if cost(place) > ratio:  # still, after what was moved here in this round
                self._clear(place)

    def _clear(self, place: Place) -> None:
        if not all(task.movable for task in place.tasks):
            return
        others = [other for other in self._board.places if other is not place]
        moved: list[tuple[TaskView, Place]] = []
        for task in self.longest_first(place.tasks):
            target = self._place_for(task, others, down=False)
            if target is None:
                break
            target.add(task)
            moved.append((task, target))
        if len(moved) == len(place.tasks):
            place.clear()
        else:
            for task, target in moved:
                target.remove(task)
