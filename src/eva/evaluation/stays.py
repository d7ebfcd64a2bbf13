"""Which task ran where and when, gathered while a simulation runs: what a timeline is drawn from.

The controller's state is looked at and never touched. A stay begins when the task has started and
ends when its copy is proven to be gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eva.control.events import (
    Event,
    InstanceLost,
    InstanceTerminated,
    TaskCheckpointed,
    TaskExited,
    TaskStarted,
    TaskStopped,
)
from eva.model.ids import InstanceId, TaskId
from eva.simulator.driver import EventSink, Simulation

_STOPS = (TaskCheckpointed, TaskStopped, TaskExited)
_GONE = (InstanceTerminated, InstanceLost)


@dataclass(frozen=True, slots=True)
class Stay:
    task: TaskId
    workload: str
    instance: InstanceId
    began_ms: int
    ended_ms: int


@dataclass(slots=True)
class Stays:
    """Give `watch` to a run; `ended` holds the stays afterwards, in the order in which they end."""

    ended: list[Stay] = field(default_factory=list)
    _open: dict[TaskId, tuple[str, InstanceId, int]] = field(default_factory=dict)

    def watch(self, simulation: Simulation) -> EventSink:
        tasks = simulation.controller.state.tasks

        def see(now_ms: int, event: Event) -> None:
            if isinstance(event, TaskStarted):
                task = tasks.get(event.task)
                if task is not None and task.instance is not None and task.epoch == event.epoch:
                    place = (task.spec.workload, task.instance.id, now_ms)
                    self._open.setdefault(event.task, place)
            elif isinstance(event, _STOPS):
                self._close(event.task, now_ms)
            elif isinstance(event, _GONE):
                here = [task for task, place in self._open.items() if place[1] == event.instance]
                for one in here:
                    self._close(one, now_ms)

        return see

    def _close(self, task: TaskId, now_ms: int) -> None:
        place = self._open.pop(task, None)
        if place is not None:
            workload, instance, began_ms = place
            self.ended.append(Stay(task, workload, instance, began_ms, now_ms))
