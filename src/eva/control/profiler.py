"""The Profiler: standalone throughput of tasks whose job states none.

It is measured the first time that a task of this workload runs alone on this family: the whole job
alone, since the siblings of a slowed task are slow too. Until then the task is not monitored.
"""

from __future__ import annotations

from eva.control.lifecycle import TaskState
from eva.control.state import State, Task


class Profiler:
    def __init__(self, state: State) -> None:
        self._state = state

    def standalone(self, task: Task) -> float | None:
        """Iterations per second alone on the family at hand: stated, else measured, else None."""
        if task.instance is None:
            return None
        family = task.instance.type.family
        stated = task.spec.throughput.on(family)
        if stated is not None:
            return stated
        return self._state.standalone.get((task.spec.workload, family))

    def measure(self, task: Task) -> None:
        """Take the measurement if this is the moment."""
        if task.instance is None or task.iterations_per_s <= 0 or not self._whole_job_alone(task):
            return
        key = task.spec.workload, task.instance.type.family
        self._state.standalone[key] = task.iterations_per_s

    def _whole_job_alone(self, task: Task) -> bool:
        return all(
            sibling.state is TaskState.RUNNING
            and sibling.instance is not None
            and len(sibling.instance.copies) == 1
            for sibling in task.job.tasks
        )
