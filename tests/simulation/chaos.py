"""A policy that makes random legal plans: the one that finds out what migrations can break.

It is pure, as policies must be: the same snapshot gets the same plan. Late in the day it settles
down, so that every job gets to its end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from eva.model.catalog import InstanceType
from eva.model.ids import InstanceId, TaskId
from eva.model.oracle import Knowledge
from eva.model.plan import ClusterPlan, Decision, PlannedInstance, Unplaceable
from eva.model.resources import Resources
from eva.model.snapshot import ClusterSnapshot, TaskView


@dataclass(slots=True)
class _Place:
    kind: InstanceType
    free: Resources
    instance: InstanceId | None = None
    tasks: list[TaskId] = field(default_factory=list)

    def take(self, task: TaskView) -> bool:
        need = task.spec.demand.on(self.kind.family)
        if need is None or not need.fits_in(self.free):
            return False
        self.free = self.free.minus(need)
        self.tasks.append(task.id)
        return True


@dataclass(frozen=True, slots=True)
class Chaos:
    seed: int
    restless: float = 0.2  # probability that a running task is moved in a round
    lazy: float = 0.1  # probability that a waiting task is left waiting
    settles_ms: int = 4 * 3_600_000
    name: str = "chaos"
    knowledge: frozenset[Knowledge] = frozenset()

    def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
        random = Random(f"{self.seed} {snapshot.now_ms}")
        settled = snapshot.now_ms > self.settles_ms
        places = {v.id: _Place(v.type, v.type.capacity, v.id) for v in snapshot.instances}
        restless: list[TaskView] = []
        for task in snapshot.tasks:
            stays = not task.movable or settled or random.random() >= self.restless
            if task.instance is not None and stays:
                assert places[task.instance].take(task), "the snapshot overfills an instance"
            elif task.instance is not None or settled or random.random() >= self.lazy:
                restless.append(task)
        pool = list(places.values())
        random.shuffle(restless)
        left = [task for task in restless if not self._settle(task, pool, snapshot, random)]
        unplaceable = [Unplaceable(task.id, "no type holds it") for task in left]
        return ClusterPlan(
            tuple(
                PlannedInstance(place.kind, tuple(place.tasks), place.instance)
                for place in pool
                if place.tasks or random.random() < 0.2
            ),
            tuple(unplaceable),
            Decision(random.choice(("full", "partial"))),
        )

    def _settle(
        self, task: TaskView, pool: list[_Place], snapshot: ClusterSnapshot, random: Random
    ) -> bool:
        shuffled = random.sample(pool, len(pool))
        if random.random() < 0.7 and any(place.take(task) for place in shuffled):
            return True
        kinds = random.sample(snapshot.catalog.types, len(snapshot.catalog))
        fitting = (place for kind in kinds if (place := _Place(kind, kind.capacity)).take(task))
        chosen = next(fitting, None)
        if chosen is not None:
            pool.append(chosen)
        return chosen is not None
