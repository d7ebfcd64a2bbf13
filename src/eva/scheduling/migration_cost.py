"""M: what it costs, once, to get from the present configuration to a planned one.

Two things are paid for without work being done: every new instance from the start of its billing
until tasks can start on it, and every job that moves, worth its reservation price for as long as
it stands still. A job stands still as a whole, for as long as its slowest task takes to be stopped
here and started there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eva.model.ids import JobId, TaskId
from eva.model.plan import PlannedInstance
from eva.model.snapshot import TaskView
from eva.model.units import cost_micros


@dataclass(frozen=True, slots=True)
class MigrationCost:
    micros: int
    moved: tuple[TaskId, ...]
    launched: int


def migration_cost(
    planned: Iterable[PlannedInstance],
    tasks: Mapping[TaskId, TaskView],
    worth: Mapping[JobId, int],
) -> MigrationCost:
    """The one-off cost of carrying out `planned`; `worth` is what each job is worth per hour."""
    micros = launched = 0
    moved: list[TaskId] = []
    still_ms: dict[JobId, int] = {}
    for instance in planned:
        if instance.instance is None:
            launched += 1
            micros += cost_micros(instance.type.hourly_micros, instance.type.delays.setup_ms)
        for name in instance.tasks:
            task = tasks[name]
            if task.instance is not None and task.instance != instance.instance:
                moved.append(name)
                delays = task.spec.delays
                still = delays.checkpoint_ms + delays.launch_ms
                still_ms[task.job] = max(still, still_ms.get(task.job, 0))
    micros += sum(cost_micros(worth.get(job, 0), still) for job, still in still_ms.items())
    return MigrationCost(micros, tuple(moved), launched)
