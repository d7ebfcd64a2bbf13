"""The Profiler: standalone throughput of tasks whose job states none.

It is measured the first time that a task of this workload runs alone on this family: the whole job
alone, since the siblings of a slowed task are slow too. Until then the task is not monitored.
"""

from __future__ import annotations

from eva.control.lifecycle import TaskState
from eva.control.state import Instance, State, Task
from eva.model.ids import Workload
from eva.model.spot import on_demand


class Profiler:
    def __init__(self, state: State) -> None:
        self._state = state

    def standalone(self, task: Task) -> float | None:
        """Iterations per second alone on the family at hand: stated, else measured, else None."""
        if task.instance is None:
            return None
        stated = task.spec.throughput.on(task.instance.type.family)
        if stated is not None:
            return stated
        return self._state.standalone.get(_key(task, task.instance))

    def measure(self, task: Task) -> None:
        """Take the measurement if this is the moment."""
        if task.instance is None or task.iterations_per_s <= 0 or not self._whole_job_alone(task):
            return
        self._state.standalone[_key(task, task.instance)] = task.iterations_per_s

    def _whole_job_alone(self, task: Task) -> bool:
        return all(
            sibling.state is TaskState.RUNNING
            and sibling.instance is not None
            and len(sibling.instance.copies) == 1
            for sibling in task.job.tasks
        )


def _key(task: Task, instance: Instance) -> tuple[Workload, str]:
    """What is measured on spot holds on demand: the machine is the same."""
    return task.spec.workload, on_demand(instance.type.family)
