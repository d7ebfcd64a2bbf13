"""Owl: at most two tasks on an instance, and only two that are known to get along.

Tian et al. (SoCC 2022) profile all pairs of functions beforehand and place only pairs together
that hardly slow each other. Eva's paper takes the pairs by cost-efficiency: in descending order of
their throughput-normalized reservation price over the price of the cheapest type that holds both.

Each round, the tasks that are not in a running pair are paired greedily in that order. A pair must
run at `least_throughput` or better on both sides by the profile, and be worth its instance. It
shares the instance of one of the two if that is of the type sought, or else gets a new one. A task
that stays single is alone on its reservation-price type: when its partner has ended and left it on
something dearer, it moves. Running pairs stay as they are.

Eva's paper puts no number on "low interference"; 0.85 comes nearest to its bill for Owl.

It is given one piece of oracle knowledge: the true pairwise co-location throughput.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from eva.model.catalog import Catalog, InstanceType
from eva.model.ids import TaskId
from eva.model.jobs import TaskSpec
from eva.model.oracle import Knowledge
from eva.model.plan import ClusterPlan, Decision
from eva.model.snapshot import ClusterSnapshot, TaskView
from eva.scheduling.baselines.board import Board, Place, demand_on
from eva.scheduling.valuation import quanta


class _Offer(NamedTuple):
    """Two tasks that may share an instance of `kind`, and what that returns per dollar."""

    per_dollar: float
    kind: InstanceType
    one: TaskView
    other: TaskView


@dataclass(frozen=True, slots=True)
class Owl:
    name: str = "owl"
    least_throughput: float = 0.85
    knowledge: frozenset[Knowledge] = field(
        default=frozenset({Knowledge.PAIRWISE_PROFILE}), init=False
    )

    def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
        board = Board(snapshot)
        singles = {place.tasks[0].id: place for place in board.places if _may_pair(board, place)}
        seated = [place.tasks[0] for place in singles.values()]
        open_tasks = sorted([*seated, *board.waiting], key=lambda task: task.id)
        paired: set[TaskId] = set()
        for offer in self._best_first(board, open_tasks):
            if offer.one.id not in paired and offer.other.id not in paired:
                paired.update((offer.one.id, offer.other.id))
                _bring_together(board, offer, singles)
        for task in open_tasks:
            if task.id not in paired:
                _leave_alone(board, task, singles.get(task.id))
        return board.plan(Decision(self.name, reason="pairs that hardly slow each other"))

    def _best_first(self, board: Board, tasks: list[TaskView]) -> list[_Offer]:
        offers = (self._offer(board, one, other) for one, other in combinations(tasks, 2))
        return sorted(
            (offer for offer in offers if offer is not None),
            key=lambda offer: (-offer.per_dollar, offer.one.id, offer.other.id),
        )

    def _offer(self, board: Board, one: TaskView, other: TaskView) -> _Offer | None:
        oracle = board.snapshot.oracle
        mine = oracle.pair(one.spec.workload, other.spec.workload)
        theirs = oracle.pair(other.spec.workload, one.spec.workload)
        if min(mine, theirs) < self.least_throughput:
            return None
        kind = _cheapest_for(board.snapshot.catalog, one.spec, other.spec)
        if kind is None:
            return None
        worth = board.pair_quanta((one, other), (mine, theirs), kind)
        price = quanta(kind.hourly_micros)
        if worth < price:
            return None
        return _Offer(worth / price, kind, one, other)


def _may_pair(board: Board, place: Place) -> bool:
    return len(place.tasks) == 1 and place.tasks[0].movable and board.is_priced(place.tasks[0])


@lru_cache(maxsize=65_536)
def _cheapest_for(catalog: Catalog, one: TaskSpec, other: TaskSpec) -> InstanceType | None:
    """The cheapest type that holds both."""
    for kind in reversed(catalog.types):
        first, second = demand_on(one, kind.family), demand_on(other, kind.family)
        if first is not None and second is not None and first.plus(second).fits_in(kind.capacity):
            return kind
    return None


def _bring_together(board: Board, offer: _Offer, singles: dict[TaskId, Place]) -> None:
    """Onto the instance of one of them if it is of the right type, else onto a new one."""
    pair = (offer.one, offer.other)
    homes = [singles[task.id] for task in pair if task.id in singles]
    target = next((home for home in homes if home.type == offer.kind), None)
    for home in homes:
        home.clear()
    if target is None:
        board.launch(offer.kind, pair)
    else:
        for task in pair:
            target.add(task)


def _leave_alone(board: Board, task: TaskView, home: Place | None) -> None:
    if home is not None and home.type.hourly_micros <= board.price(task).hourly_micros:
        return
    if home is not None:
        home.clear()
    board.launch_alone(task)
