"""Copies of tasks start and stop: fetch, build, run; kill, upload.

Building is skipped where the instance has built the image before. Preparing a task does its
fetching and building ahead, so that starting it later takes only what is left of them.
"""

from __future__ import annotations

from eva.control.commands import CheckpointTask, PrepareTask, StartTask, StopTask
from eva.control.events import (
    CheckpointFailed,
    Event,
    TaskCheckpointed,
    TaskExited,
    TaskStarted,
    TaskStartFailed,
    TaskStopped,
)
from eva.model.errors import InvariantError
from eva.simulator.delays import Delays
from eva.simulator.faults import Faults
from eva.simulator.messenger import Messenger
from eva.simulator.progress import Progress
from eva.simulator.recorder import touch
from eva.simulator.timeline import Timeline
from eva.simulator.world import Copy, Phase, World, WorldInstance, WorldJob
from eva.traces.trace import TaskPhases

CRASH_EXIT_CODE = 1


class TaskMachinery:
    """What the workers of all instances do."""

    def __init__(
        self,
        timeline: Timeline,
        world: World,
        progress: Progress,
        messenger: Messenger,
        delays: Delays,
        faults: Faults,
    ) -> None:
        self._timeline = timeline
        self._world = world
        self._progress = progress
        self._messenger = messenger
        self._delays = delays
        self._faults = faults

    def prepare(self, command: PrepareTask) -> None:
        instance = self._world.instances.get(command.instance)
        if instance is None or instance.silent:
            return
        job, index = self._world.owners[command.task]
        delay_ms = self._staging_ms(instance, job.trace.phases[index])
        instance.prepared[command.task] = self._timeline.now_ms + delay_ms

    def start(self, command: StartTask) -> None:
        instance = self._world.instances.get(command.instance)
        if instance is None or instance.silent:
            return  # word of its end is on the way
        if instance.ready_ms is None or instance.terminating:
            raise InvariantError(f"task {command.task} is started on {instance.id}, not ready")
        job, index = self._world.owners[command.task]
        phases, spec = job.trace.phases[index], job.trace.spec.tasks[index]
        demand = spec.demand.on(instance.type.family)
        if demand is None:
            raise InvariantError(f"task {command.task} cannot run on {instance.type.name}")
        share = max(
            need / have if have else 0.0
            for need, have in zip(demand, instance.type.capacity, strict=True)
        )
        touch(instance, self._timeline.now_ms)
        copy = Copy(command.task, command.epoch, job, index, instance, spec, phases, demand, share)
        self._world.put(copy)
        prepared_ms = instance.prepared.pop(command.task, None)
        if prepared_ms is None:
            prepared_ms = self._timeline.now_ms + self._staging_ms(instance, phases)
        if self._faults.strikes(self._faults.settings.start_failed):
            self._timeline.at(prepared_ms, lambda: self._fail_to_start(copy))
        else:
            self._timeline.at(prepared_ms, lambda: self._run(copy))

    def checkpoint(self, command: CheckpointTask) -> None:
        copy = self._addressed(command)
        if copy is None or copy.phase is not Phase.RUNNING:
            return
        self._halt(copy)
        kill_ms = self._delays.task(copy.phases.kill_ms)
        if self._faults.strikes(self._faults.settings.checkpoint_failed):
            self._timeline.after(kill_ms, lambda: self._fail_to_checkpoint(copy, command.attempt))
        else:
            upload_ms = self._delays.task(copy.phases.upload_ms)
            event = TaskCheckpointed(copy.task, copy.epoch)
            self._timeline.after(kill_ms + upload_ms, lambda: self._leave(copy, event))

    def stop(self, command: StopTask) -> None:
        copy = self._addressed(command)
        if copy is None:
            return
        copy.must_stop = True
        if copy.phase is Phase.LEAVING:
            return
        self._halt(copy)
        copy.job.rolled_back = True
        kill_ms = self._delays.task(copy.phases.kill_ms)
        event = TaskStopped(copy.task, copy.epoch)
        self._timeline.after(kill_ms, lambda: self._leave(copy, event))

    def complete(self, job: WorldJob) -> None:
        """All the work of a job is done: every copy exits."""
        self._progress.halt(job)
        job.saved_ms = 0.0
        for copy in tuple(job.copies.values()):
            job.done.add(copy.index)
            self._remove(copy)
            self._say(copy, TaskExited(copy.task, copy.epoch, 0))

    def _addressed(self, command: CheckpointTask | StopTask) -> Copy | None:
        copy = self._world.copies.get(command.task)
        if copy is None or copy.epoch != command.epoch or copy.instance.silent:
            return None
        return copy

    def _staging_ms(self, instance: WorldInstance, phases: TaskPhases) -> int:
        delay_ms = self._delays.task(phases.fetch_ms)
        if phases.image not in instance.images:
            delay_ms += self._delays.task(phases.build_ms)
            self._timeline.after(delay_ms, lambda: instance.images.add(phases.image))
        return delay_ms

    def _run(self, copy: Copy) -> None:
        if not self._here(copy) or copy.phase is not Phase.LAUNCHING:
            return
        touch(copy.instance, self._timeline.now_ms)
        copy.phase = Phase.RUNNING
        self._progress.copy_runs(copy)
        if self._faults.strikes(self._faults.settings.task_crashes):
            self._timeline.after(self._faults.soon_ms(), lambda: self._crash(copy))
        self._say(copy, TaskStarted(copy.task, copy.epoch))

    def _fail_to_start(self, copy: Copy) -> None:
        if self._here(copy) and copy.phase is Phase.LAUNCHING:
            infrastructure = self._faults.strikes(0.5)
            self._remove(copy)
            self._say(copy, TaskStartFailed(copy.task, copy.epoch, "no image", infrastructure))

    def _fail_to_checkpoint(self, copy: Copy, attempt: int) -> None:
        if not self._here(copy):
            return
        if copy.must_stop:
            copy.job.rolled_back = True
            self._leave(copy, TaskStopped(copy.task, copy.epoch))
            return
        touch(copy.instance, self._timeline.now_ms)
        copy.phase = Phase.RUNNING
        self._progress.copy_runs(copy)
        self._say(copy, CheckpointFailed(copy.task, copy.epoch, attempt, "upload failed"))

    def _crash(self, copy: Copy) -> None:
        if self._here(copy) and copy.phase is Phase.RUNNING:
            copy.job.rolled_back = True
            self._halt(copy)
            self._remove(copy)
            self._say(copy, TaskExited(copy.task, copy.epoch, CRASH_EXIT_CODE))

    def _halt(self, copy: Copy) -> None:
        touch(copy.instance, self._timeline.now_ms)
        was_running = copy.phase is Phase.RUNNING
        copy.phase = Phase.LEAVING
        if was_running:
            copy.job.stops += 1
        self._progress.copy_halts(copy)

    def _leave(self, copy: Copy, event: Event) -> None:
        if self._here(copy):
            self._remove(copy)
            self._say(copy, event)

    def _remove(self, copy: Copy) -> None:
        touch(copy.instance, self._timeline.now_ms)
        self._world.remove(copy)
        self._progress.copy_halts(copy)

    def _here(self, copy: Copy) -> bool:
        return self._world.copies.get(copy.task) is copy

    def _say(self, copy: Copy, event: Event) -> None:
        if not copy.instance.silent:
            self._messenger.send(event)
