"""From patterns back to task ids: who goes where, so that as few as possible have to move.

A pattern says "two of class A and one of class B on a p3.8xlarge"; which tasks these are is still
open. Present instances of the right type are matched to pattern copies by how much moving they
save, dearest first; a matched instance keeps the tasks it has in common with its pattern, and an
instance without anything in common is still better reused than launched. The remaining places are
filled in order of task id.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from eva.model.ids import InstanceId, TaskId
from eva.model.plan import PlannedInstance
from eva.model.snapshot import InstanceView
from eva.scheduling.packing import Pattern
from eva.scheduling.task_classes import TaskClass
from eva.scheduling.valuation import QUANTA_PER_MICRO


@dataclass(frozen=True, slots=True)
class _Match:
    saved: int  # worth of not moving the common tasks, in micro-dollar milliseconds
    instance: int
    pattern: int


def expand(
    patterns: Sequence[Pattern],
    classes: Sequence[TaskClass],
    placing: Sequence[Sequence[TaskId]],
    instances: Sequence[InstanceView],
) -> tuple[PlannedInstance, ...]:
    """Name the tasks of every pattern copy, reusing `instances` where their types agree.

    `placing` lists, class by class and in id order, the tasks that the patterns were made for.
    """
    home = _residents(placing, instances)
    reused = _match(patterns, classes, instances, home)
    staying = {task for row in reused for task in row.staying}
    pools = [iter([task for task in tasks if task not in staying]) for tasks in placing]
    planned: list[PlannedInstance] = []
    used: Counter[int] = Counter()
    for row in reused:
        used[row.pattern] += 1
        planned.append(_fill(patterns[row.pattern], row.staying_by_class, pools, row.instance))
    for index, pattern in enumerate(patterns):
        new = pattern.copies - used[index]
        planned.extend(_fill(pattern, {}, pools, None) for _ in range(new))
    return tuple(planned)


@dataclass(frozen=True, slots=True)
class _Reuse:
    instance: InstanceId
    pattern: int
    staying_by_class: dict[int, list[TaskId]]

    @property
    def staying(self) -> Iterator[TaskId]:
        return (task for tasks in self.staying_by_class.values() for task in tasks)


def _residents(
    placing: Sequence[Sequence[TaskId]],
    instances: Sequence[InstanceView],
) -> list[dict[int, list[TaskId]]]:
    """For each instance, the tasks on it that are being placed, by class."""
    if not any(view.tasks for view in instances):
        return [{} for _ in instances]
    class_of = {task: index for index, tasks in enumerate(placing) for task in tasks}
    home: list[dict[int, list[TaskId]]] = []
    for view in instances:
        by_class: defaultdict[int, list[TaskId]] = defaultdict(list)
        for task in sorted(view.tasks):
            if task in class_of:
                by_class[class_of[task]].append(task)
        home.append(by_class)
    return home


def _match(
    patterns: Sequence[Pattern],
    classes: Sequence[TaskClass],
    instances: Sequence[InstanceView],
    home: Sequence[dict[int, list[TaskId]]],
) -> list[_Reuse]:
    copies = [pattern.copies for pattern in patterns]
    free = dict.fromkeys(range(len(instances)))
    reused: list[_Reuse] = []

    def take(instance: int, pattern: int) -> None:
        copies[pattern] -= 1
        del free[instance]
        staying = {
            index: home[instance][index][:count]
            for index, count in patterns[pattern].members
            if index in home[instance]
        }
        reused.append(_Reuse(instances[instance].id, pattern, staying))

    for match in _overlaps(patterns, classes, instances, home):
        if match.instance in free and copies[match.pattern]:
            take(match.instance, match.pattern)
    empty_handed: defaultdict[str, deque[int]] = defaultdict(deque)
    for instance in sorted(free, key=lambda i: instances[i].id):
        empty_handed[instances[instance].type.name].append(instance)
    for index, pattern in enumerate(patterns):
        available = empty_handed[pattern.type.name]
        while copies[index] and available:
            take(available.popleft(), index)
    return reused


def _overlaps(
    patterns: Sequence[Pattern],
    classes: Sequence[TaskClass],
    instances: Sequence[InstanceView],
    home: Sequence[dict[int, list[TaskId]]],
) -> list[_Match]:
    """Every pair of instance and pattern with something in common, the greatest saving first."""
    users: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for index, pattern in enumerate(patterns):
        for group, count in pattern.members:
            users[pattern.type.name, group].append((index, count))
    weights = [_moving_weight(group) for group in classes]
    matches: list[_Match] = []
    for position, view in enumerate(instances):
        saved: Counter[int] = Counter()
        for group, tasks in home[position].items():
            for index, count in users[view.type.name, group]:
                saved[index] += min(count, len(tasks)) * weights[group]
        matches.extend(_Match(amount, position, index) for index, amount in saved.items())
    matches.sort(key=lambda m: (-m.saved, instances[m.instance].id, m.pattern))
    return matches


def _moving_weight(group: TaskClass) -> int:
    """How much it hurts to move one task of this class; never nothing."""
    delays = group.spec.delays
    return group.price.hourly_micros * (delays.checkpoint_ms + delays.launch_ms) + 1


def _fill(
    pattern: Pattern,
    staying: dict[int, list[TaskId]],
    pools: Sequence[Iterator[TaskId]],
    instance: InstanceId | None,
) -> PlannedInstance:
    tasks: list[TaskId] = []
    for index, count in pattern.members:
        kept = staying.get(index, [])
        tasks.extend(kept)
        tasks.extend(islice(pools[index], count - len(kept)))
    value = pattern.value // QUANTA_PER_MICRO
    return PlannedInstance(pattern.type, tuple(tasks), instance, value)
