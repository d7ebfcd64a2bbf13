"""The ThroughputMonitor: what tasks report, into the co-location table.

Samples are taken in as they come; the table is brought up to date once a round, and only for
instances whose members or samples changed since. An instance counts only if every task on it
reports. Tasks without a known standalone throughput do not report in this sense.
"""

from __future__ import annotations

from eva.control.lifecycle import TaskState
from eva.control.profiler import Profiler
from eva.control.settings import ControllerSettings
from eva.control.state import Instance, State, Task
from eva.model.ids import InstanceId
from eva.scheduling.attribution import TaskObservation, attribute


class ThroughputMonitor:
    def __init__(self, state: State, profiler: Profiler, settings: ControllerSettings) -> None:
        self._state = state
        self._profiler = profiler
        self._settings = settings

    def sampled(self, task: Task, iterations_per_s: float) -> None:
        if task.instance is not None and task.iterations_per_s != iterations_per_s:
            task.iterations_per_s = iterations_per_s
            self._state.unobserved[task.instance.id] = task.instance

    def learn(self) -> None:
        """Bring the table up to date. Nothing new leaves the very same table in place."""
        state = self._state
        if state.round % self._settings.reattribute_rounds == 0:
            for instance in state.instances.values():
                if any(len(task.job.tasks) > 1 for task in instance.copies.values()):
                    state.unobserved[instance.id] = instance
        if not state.unobserved:
            return
        changed = self._with_siblings()
        state.unobserved.clear()
        known = len(state.standalone)
        for instance in changed:
            self._measure(instance)
        if len(state.standalone) > known:  # rare: others may have waited for this measure
            changed = list(state.instances.values())
        groups = [
            tuple(self._observe(task) for task in instance.copies.values())
            for instance in changed
            if instance.copies
        ]
        entries = attribute(groups, state.table)
        if entries:
            state.table = state.table.record(entries)

    def _with_siblings(self) -> list[Instance]:
        """The changed instances, and those where siblings of their tasks run."""
        found: dict[InstanceId, Instance] = dict(self._state.unobserved)
        for instance in self._state.unobserved.values():
            for task in instance.copies.values():
                for sibling in task.job.tasks:
                    if sibling.instance is not None:
                        found[sibling.instance.id] = sibling.instance
        return list(found.values())

    def _measure(self, instance: Instance) -> None:
        """Let the Profiler see a task that is alone on its instance."""
        if len(instance.copies) == 1:
            (task,) = instance.copies.values()
            if self._profiler.standalone(task) is None:
                self._profiler.measure(task)

    def _observe(self, task: Task) -> TaskObservation:
        throughput = None
        if task.state is TaskState.RUNNING and task.iterations_per_s > 0:
            alone = self._profiler.standalone(task)
            if alone is not None and alone > 0:
                throughput = min(1.0, task.iterations_per_s / alone)
        return TaskObservation(
            task.id, task.job.id, task.spec.workload, throughput, len(task.job.tasks)
        )
