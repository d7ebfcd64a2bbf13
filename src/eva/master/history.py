"""What happened lately and why, in words: the newest decisions and events, kept in memory.

It is filled by whatever goes through the controller, folding the journal included, so it is there
again after a restart. The journal itself keeps everything; this is what users page through.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from eva.control import commands as cmd
from eva.control import events as ev
from eva.control.commands import Command
from eva.control.events import Event
from eva.model.ids import JobId
from eva.model.plan import ClusterPlan

KEPT_EVENTS = 5_000
KEPT_DECISIONS = 500


@dataclass(frozen=True, slots=True)
class Happening:
    """One line for people. `job` and `instance` are what it is about, for filtering."""

    number: int
    time_ms: int
    kind: str
    text: str
    job: str | None = None
    instance: str | None = None


@dataclass(frozen=True, slots=True)
class Adopted:
    """One plan that came back, and what was done about it."""

    round: int
    time_ms: int
    plan: ClusterPlan
    launched: tuple[tuple[str, str], ...]  # instance and type
    terminated: tuple[str, ...]
    moved: tuple[str, ...]
    started: tuple[str, ...]
    hourly_micros_before: int = 0  # of the instances that the plan was made from

    @property
    def changed_anything(self) -> bool:
        return bool(self.launched or self.terminated or self.moved or self.started)


@dataclass(slots=True)
class History:
    events: deque[Happening] = field(default_factory=lambda: deque(maxlen=KEPT_EVENTS))
    decisions: deque[Adopted] = field(default_factory=lambda: deque(maxlen=KEPT_DECISIONS))
    numbered: int = 0
    _before: tuple[int, int] = (0, 0)  # the round that is being planned, and its price

    def witness(self, now_ms: int, event: Event, commands: list[Command]) -> None:
        """Told of everything that the controller handled."""
        if isinstance(event, ev.PlanComputed):
            self._adopted(now_ms, event, commands)
        for thing in (event, *commands):
            if isinstance(thing, cmd.ComputePlan):
                price = sum(view.type.billed_micros for view in thing.snapshot.instances)
                self._before = (thing.round, price)
            words = _WORDS.get(type(thing))
            if words is not None:
                self._add(now_ms, thing, words(thing))

    def _add(self, now_ms: int, thing: Any, text: str) -> None:
        self.numbered += 1
        task = getattr(thing, "task", None)
        job = getattr(thing, "job", None) or (None if task is None else job_of(task))
        instance = getattr(thing, "instance", None)
        kind = type(thing).__name__
        self.events.append(Happening(self.numbered, now_ms, kind, text, job, instance))

    def _adopted(self, now_ms: int, event: ev.PlanComputed, commands: list[Command]) -> None:
        launched, terminated, moved, started = [], [], [], []
        for command in commands:
            if isinstance(command, cmd.LaunchInstance):
                launched.append((str(command.instance), command.type.name))
            elif isinstance(command, cmd.TerminateInstance):
                terminated.append(str(command.instance))
            elif isinstance(command, cmd.CheckpointTask):
                moved.append(str(command.task))
            elif isinstance(command, cmd.StartTask):
                started.append(str(command.task))
        self.decisions.append(
            Adopted(
                event.round,
                now_ms,
                event.plan,
                tuple(launched),
                tuple(terminated),
                tuple(moved),
                tuple(started),
                self._before[1] if self._before[0] == event.round else 0,
            )
        )


def job_of(task: str) -> JobId:
    return JobId(task.rpartition(".")[0])


_WORDS: dict[type, Callable[[Any], str]] = {
    ev.JobSubmitted: lambda e: f"{e.job} submitted, {len(e.spec.tasks)} task(s)",
    ev.JobCancelled: lambda e: f"{e.job} is to be cancelled",
    ev.PlanFailed: lambda e: f"no plan for round {e.round}: {e.reason}",
    ev.InstanceAcquired: lambda e: f"{e.instance} acquired, billing starts",
    ev.InstanceReady: lambda e: f"{e.instance} ready",
    ev.LaunchRefused: lambda e: f"{e.instance} refused: {e.reason}",
    ev.CatalogChanged: lambda e: f"prices of {len(e.types)} types" + (e.unfit and f": {e.unfit}"),
    ev.InstanceLost: lambda e: f"{e.instance} lost, billing ends",
    ev.InstanceTerminated: lambda e: f"{e.instance} terminated, billing ends",
    ev.InstanceUnreachable: lambda e: f"{e.instance} unreachable",
    ev.SpotNotice: lambda e: f"{e.instance} is taken back at {e.deadline_ms} ms",
    ev.TaskStarted: lambda e: f"{e.task} runs (epoch {e.epoch})",
    ev.TaskStartFailed: lambda e: f"{e.task} did not start (epoch {e.epoch}): {e.reason}",
    ev.TaskCheckpointed: lambda e: f"{e.task} checkpointed and stopped (epoch {e.epoch})",
    ev.CheckpointFailed: lambda e: f"{e.task} keeps running, no checkpoint: {e.reason}",
    ev.TaskStopped: lambda e: f"{e.task} stopped (epoch {e.epoch})",
    ev.TaskExited: lambda e: f"{e.task} exited with {e.exit_code} (epoch {e.epoch})",
    cmd.LaunchInstance: lambda c: f"launching {c.instance}, a {c.type.name}",
    cmd.TerminateInstance: lambda c: f"terminating {c.instance}",
    cmd.StartTask: lambda c: f"starting {c.task} on {c.instance} (epoch {c.epoch})",
    cmd.CheckpointTask: lambda c: f"checkpointing {c.task} on {c.instance} to move it",
    cmd.StopTask: lambda c: f"stopping {c.task} on {c.instance}",
}
