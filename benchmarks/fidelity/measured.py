"""What the machine added to the trace's own delays, read off a live run.

The journal is folded once more by the controller that wrote it, so every command is seen beside
the events that answered it; the tasks' diaries tell when progress began and ended. Means, because
cost is linear in them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from benchmarks.fidelity.live import LiveRun
from benchmarks.fidelity.scenario import Scenario
from eva.adapters.stores import open_journal
from eva.control import commands as cmd
from eva.control import events as ev
from eva.control.controller import Controller
from eva.control.journal import Codec
from eva.control.settings import ControllerSettings
from eva.master.memory import EVENT
from eva.model.catalog import Catalog, InstanceDelays
from eva.model.ids import InstanceId, JobId, TaskId
from eva.model.jobs import JobSpec
from eva.traces.trace import TraceJob

_Copy = tuple[TaskId, int]


@dataclass(slots=True)
class Story:
    """When what was said, in the order of the journal."""

    submitted: dict[JobId, tuple[int, JobSpec]] = field(default_factory=dict)
    launch: dict[InstanceId, int] = field(default_factory=dict)
    acquired: dict[InstanceId, int] = field(default_factory=dict)
    ready: dict[InstanceId, int] = field(default_factory=dict)
    terminate: dict[InstanceId, int] = field(default_factory=dict)
    terminated: dict[InstanceId, int] = field(default_factory=dict)
    types: dict[InstanceId, InstanceDelays] = field(default_factory=dict)
    start: dict[_Copy, int] = field(default_factory=dict)
    started: dict[_Copy, int] = field(default_factory=dict)
    checkpoint: dict[_Copy, int] = field(default_factory=dict)
    checkpointed: dict[_Copy, int] = field(default_factory=dict)
    exited: dict[_Copy, int] = field(default_factory=dict)
    failures: list[ev.Event] = field(default_factory=list)

    def event(self, now_ms: int, event: ev.Event) -> None:
        match event:
            case ev.JobSubmitted(job, spec):
                self.submitted[job] = now_ms, spec
            case ev.InstanceAcquired(instance, at_ms):
                self.acquired[instance] = now_ms if at_ms is None else at_ms
            case ev.InstanceReady(instance):
                self.ready[instance] = now_ms
            case ev.InstanceTerminated(instance, at_ms):
                self.terminated[instance] = now_ms if at_ms is None else at_ms
            case ev.TaskStarted(task, epoch):
                self.started[task, epoch] = now_ms
            case ev.TaskCheckpointed(task, epoch):
                self.checkpointed[task, epoch] = now_ms
            case ev.TaskExited(task, epoch):
                self.exited[task, epoch] = now_ms
            case ev.TaskStartFailed() | ev.CheckpointFailed() | ev.InstanceLost():
                self.failures.append(event)

    def command(self, now_ms: int, command: cmd.Command) -> None:
        match command:
            case cmd.LaunchInstance(instance, kind):
                self.launch[instance] = now_ms
                self.types[instance] = kind.delays
            case cmd.TerminateInstance(instance):
                self.terminate.setdefault(instance, now_ms)
            case cmd.StartTask(task=task, epoch=epoch):
                self.start.setdefault((task, epoch), now_ms)
            case cmd.CheckpointTask(task=task, epoch=epoch):
                self.checkpoint.setdefault((task, epoch), now_ms)


@dataclass(frozen=True, slots=True)
class Added:
    """Mean milliseconds on top of what the catalog and the workloads state.

    `start_ms` runs from the order to start a task to its first step, `stop_ms` from the order to
    checkpoint to the proof of stop, `exit_ms` from the last step to word of the end.
    """

    acquire_ms: int
    setup_ms: int
    terminate_ms: int
    start_ms: int
    stop_ms: int
    exit_ms: int


def read_story(run: LiveRun, catalog: Catalog) -> Story:
    story, codec = Story(), Codec(catalog)
    controller = Controller(catalog, ControllerSettings())
    with closing(open_journal(None, run.home)) as journal:
        for record in journal.read(1):
            if record.kind != EVENT:
                continue
            now_ms, event = codec.decode(json.loads(record.payload))
            story.event(now_ms, event)
            for command in controller.handle(event, now_ms):
                story.command(now_ms, command)
    return story


def read_diaries(run: LiveRun) -> dict[_Copy, dict[str, Any]]:
    """What each copy wrote down, by task and epoch."""
    found = {}
    for path in (run.board / "diary").iterdir():
        diary = json.loads(path.read_text())
        found[TaskId(diary["task"]), diary["epoch"]] = diary
    return found


def measure(scenario: Scenario, run: LiveRun, story: Story) -> Added:
    """Gangs are left out of the start: they wait for each other, which the simulator models."""
    diaries = read_diaries(run)
    jobs = _by_job(scenario, story)
    gaps: dict[str, list[float]] = defaultdict(list)
    for name, delays in story.types.items():
        if name not in story.ready or name not in story.terminated:
            continue
        acquired, ready = story.acquired[name], story.ready[name]
        gaps["acquire"].append(acquired - story.launch[name] - delays.acquire_ms)
        gaps["setup"].append(ready - acquired - delays.setup_ms)
        gaps["terminate"].append(
            story.terminated[name] - story.terminate[name] - delays.terminate_ms
        )
    for copy, began_ms in story.start.items():
        job, diary = jobs[_job_of(copy[0])], diaries.get(copy, {})
        phases = job.phases[0]
        if "progress_ms" in diary and len(job.phases) == 1:
            gaps["start"].append(diary["progress_ms"] - began_ms - scenario.live_ms(phases.init_ms))
        if "finished_ms" in diary and copy in story.exited:
            gaps["exit"].append(story.exited[copy] - diary["finished_ms"])
        if copy in story.checkpointed:
            stopped_ms = story.checkpointed[copy] - story.checkpoint[copy]
            gaps["stop"].append(stopped_ms - scenario.live_ms(phases.upload_ms))
    mean = {name: max(0, round(fmean(values))) for name, values in gaps.items()}
    return Added(
        mean["acquire"],
        mean["setup"],
        mean["terminate"],
        mean["start"],
        mean.get("stop", 0),
        mean["exit"],
    )


def _by_job(scenario: Scenario, story: Story) -> dict[JobId, TraceJob]:
    """Jobs were submitted one after the other, in the order of the trace."""
    return dict(zip(story.submitted, scenario.trace.jobs, strict=True))


def _job_of(task: TaskId) -> JobId:
    return JobId(str(task).rpartition(".")[0])
