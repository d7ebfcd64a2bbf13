"""Full and Partial Reconfiguration: one procedure that differs in what it leaves alone.

Both first fill the room that is left on the instances they keep, where a task raises what the
instance is worth at no further cost, then run Algorithm 1 on the remaining tasks and reuse the
instances that they took apart.

Full keeps only what cannot be changed. Partial keeps every instance whose tasks are still worth
its price, and so places just the waiting tasks and those of instances that stopped paying off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from eva.model.catalog import Catalog
from eva.model.ids import TaskId
from eva.model.plan import PlannedInstance
from eva.model.snapshot import InstanceView
from eva.scheduling.expansion import expand
from eva.scheduling.packing import Ints, Packer, Pattern, pack
from eva.scheduling.set_packing import pack_by_sets
from eva.scheduling.situation import Situation
from eva.scheduling.valuation import QUANTA_PER_MICRO

Packing = Callable[[Packer, Catalog, Ints], list[Pattern]]  # Algorithm 1, or a better answer


def full_reconfiguration(
    situation: Situation, packing: Packing = pack
) -> tuple[PlannedInstance, ...]:
    return _reconfigure(situation, situation.fixed, situation.free, packing)


def full_reconfiguration_by_sets(situation: Situation) -> tuple[PlannedInstance, ...]:
    return full_reconfiguration(situation, pack_by_sets)


def partial_reconfiguration(situation: Situation) -> tuple[PlannedInstance, ...]:
    worth_it = [
        view
        for view in situation.free
        if view.tasks and situation.value(view) >= view.type.hourly_micros * QUANTA_PER_MICRO
    ]
    kept = {view.id for view in worth_it}
    taken_apart = [view for view in situation.free if view.id not in kept]
    return _reconfigure(situation, [*situation.fixed, *worth_it], taken_apart, pack)


def _reconfigure(
    situation: Situation,
    kept: Sequence[InstanceView],
    taken_apart: Sequence[InstanceView],
    packing: Packing,
) -> tuple[PlannedInstance, ...]:
    placing = _to_place(situation, taken_apart)
    stock = np.array([len(tasks) for tasks in placing], dtype=np.int64)
    planned = (
        _fill_kept(situation, kept, placing, stock) if stock.any() else _as_is(situation, kept)
    )
    patterns = [
        right_sized(situation.packer, situation.snapshot.catalog, pattern)
        for pattern in packing(situation.packer, situation.snapshot.catalog, stock)
    ]
    return (*planned, *expand(patterns, situation.classes, placing, taken_apart))


def _as_is(situation: Situation, kept: Sequence[InstanceView]) -> list[PlannedInstance]:
    return [situation.as_planned(view) for view in kept]


def _to_place(situation: Situation, taken_apart: Sequence[InstanceView]) -> list[list[TaskId]]:
    """The tasks to be placed, class by class, in id order."""
    placing: list[list[TaskId]] = [[] for _ in situation.classes]
    for task in situation.waiting():
        placing[situation.class_of[task]].append(task)
    for view in taken_apart:
        for task in view.tasks:
            placing[situation.class_of[task]].append(task)
    for tasks in placing:
        tasks.sort()
    return placing


def _fill_kept(
    situation: Situation,
    kept: Sequence[InstanceView],
    placing: list[list[TaskId]],
    stock: Ints,
) -> list[PlannedInstance]:
    """Use the room that is left on kept instances, the dearest first. Takes from `placing`."""
    packer = situation.packer
    filled: list[PlannedInstance] = []
    for view in sorted(kept, key=lambda v: (-v.type.hourly_micros, v.id)):
        present = situation.members(view.tasks)
        if len(view.tasks) != sum(count for _, count in present):
            filled.append(situation.as_planned(view))  # holds something that cannot be valued
            continue
        members, value = packer.fill(view.type, stock, packer.hostable(view.type), present)
        newcomers: list[TaskId] = []
        before = dict(present)
        for index, count in members:
            for _ in range(count - before.get(index, 0)):
                newcomers.append(placing[index].pop(0))
                stock[index] -= 1
        tasks = (*view.tasks, *newcomers)
        filled.append(PlannedInstance(view.type, tasks, view.id, value // QUANTA_PER_MICRO))
    return filled


def right_sized(packer: Packer, catalog: Catalog, pattern: Pattern) -> Pattern:
    """The same tasks on the cheapest type that holds them, which may be a smaller one.

    Demand is taken for each type's own family, and so is worth: a type on which the tasks would
    save less is not taken, be it cheaper.
    """
    best = pattern
    for family in catalog.families:
        needed = packer.total_demand(family, pattern.members)
        kind = None if needed is None else catalog.cheapest(family, needed)
        if kind is not None and kind.hourly_micros < pattern.type.hourly_micros:
            value = packer.value(family, pattern.members)
            smaller = Pattern(kind, pattern.members, pattern.copies, value)
            if _saving(smaller) > _saving(best):
                best = smaller
    return best


def _saving(pattern: Pattern) -> int:
    return pattern.value - pattern.type.hourly_micros * QUANTA_PER_MICRO
