"""The Executor: starts tasks, moves jobs by checkpoint, stops and restarts them.

Jobs move and stop as a whole. A task is placed again only on proof that its old copy stopped, and
starts when its home is registered, has room, and no sibling is still being stopped. A copy never
waits for room before it is checkpointed, so two tasks may swap places.

When a move fails, the task stays where it is. Whatever was bound for its room then loses its place
(`_resolve_overflow`) and waits for the next round, so that nothing waits for room for ever.
"""

from __future__ import annotations

from collections.abc import Mapping

from eva.control.commands import CheckpointTask, Command, PrepareTask, StartTask, StopTask
from eva.control.events import TaskStartFailed
from eva.control.lifecycle import InstanceState, JobState, JobStep, TaskState, TaskStep
from eva.control.provisioner import Provisioner
from eva.control.settings import ControllerSettings
from eva.control.state import Ending, Instance, Job, JobRecord, State, Task
from eva.model.ids import TaskId

_ENDINGS = {
    Ending.FAIL: JobStep.FAIL,
    Ending.CANCEL: JobStep.CANCEL,
}
# A stronger reason to stop replaces a weaker one.
_STRENGTH = {Ending.REQUEUE: 0, Ending.RETRY: 1, Ending.FAIL: 2, Ending.CANCEL: 3}


class Executor:
    def __init__(
        self, state: State, provisioner: Provisioner, settings: ControllerSettings
    ) -> None:
        self._state = state
        self._provisioner = provisioner
        self._settings = settings

    # Placing and starting

    def assign(self, job: Job, homes: Mapping[TaskId, Instance], now_ms: int) -> None:
        """Give waiting tasks of a job their homes."""
        for task in job.tasks:
            if task.id in homes:
                task.step(TaskStep.ASSIGN, now_ms)
                task.reason = ""
                self._state.bind(task, homes[task.id])
        if job.state is JobState.QUEUED:
            job.step(JobStep.PLACE, now_ms)

    def start_on(self, instance: Instance, now_ms: int, out: list[Command]) -> None:
        """Start whatever waits for this instance and can start now."""
        if instance.ready and len(instance.bound) > len(instance.copies.keys() & instance.bound):
            for task in tuple(instance.bound.values()):
                self.try_start(task, now_ms, out)

    def try_start(self, task: Task, now_ms: int, out: list[Command]) -> None:
        home = task.home
        if task.state is not TaskState.ASSIGNED or home is None or task.job.being_stopped:
            return
        if not home.ready or not home.used.plus(task.demand(home)).fits_in(home.type.capacity):
            return
        if task.origin is not None and task.origin is not home:
            task.job.migrations += 1
            self._state.migrations += 1
        task.epoch += 1
        task.step(TaskStep.START, now_ms)
        self._state.occupy(task, home)
        if task.job.first_start_ms is None:
            task.job.first_start_ms = now_ms
        out.append(StartTask(task.id, task.epoch, home.id))

    def started(self, task: Task, now_ms: int) -> None:
        task.step(TaskStep.STARTED, now_ms)
        if task.instance is not None:
            self._state.unobserved[task.instance.id] = task.instance
        self._check_all_run(task.job, now_ms)

    # Moving

    def move(
        self, job: Job, homes: Mapping[TaskId, Instance], now_ms: int, out: list[Command]
    ) -> None:
        """Adopt new homes for tasks of a running job."""
        for task in job.tasks:
            if task.id in homes:
                self._state.bind(task, homes[task.id])
        job.step(JobStep.PREPARE, now_ms)
        self._state.dirty_tasks = True
        self.advance_move(job, now_ms, out)

    def advance_move(self, job: Job, now_ms: int, out: list[Command]) -> None:
        """Checkpoint a preparing job as soon as it may stop."""
        if job.state is not JobState.PREPARING:
            return
        moving = [task for task in job.tasks if task.home is not task.instance]
        if self._settings.migrate == "prepare-first":
            if not all(task.home is not None and task.home.ready for task in moving):
                return
            out.extend(PrepareTask(t.id, t.home.id) for t in moving if t.home is not None)
        job.step(JobStep.MOVE, now_ms)
        for task in job.tasks:
            if task.state is TaskState.RUNNING:
                self._checkpoint(task, now_ms, out)

    def checkpoint_failed(self, task: Task, now_ms: int, out: list[Command]) -> None:
        """The task keeps running and its move is off; but a doomed place is left anyway."""
        job, source = task.job, task.instance
        if job.state is not JobState.MOVING or source is None or not self._can_stay(source):
            task.step(TaskStep.STOP, now_ms)
            self._state.bind(task, None)
            self._order_stop(task, out)
            if job.state is not JobState.STOPPING:
                self.stop(job, Ending.REQUEUE, f"checkpoint of {task.id} failed", now_ms, out)
            return
        task.step(TaskStep.CHECKPOINT_FAILED, now_ms)
        self._provisioner.retain(source)
        self._state.bind(task, source)
        self._resolve_overflow(source, now_ms, out)
        for sibling in job.tasks:
            if sibling is not task:
                self._return(sibling, now_ms)
        self._settle(job, now_ms, out)

    def _return(self, task: Task, now_ms: int) -> None:
        """Bind a task of an abandoned move for the place it came from, if that is still there."""
        if task.state is TaskState.CHECKPOINTING:
            place = task.instance
        elif task.state is TaskState.ASSIGNED:
            place = task.origin
        else:
            return
        if place is task.home:
            return
        self._state.bind(task, None)
        there = place is not None and self._state.instances.get(place.id) is place
        if place is not None and there and self._can_stay(place):
            self._provisioner.retain(place)
            if place.reserved.plus(task.demand(place)).fits_in(place.type.capacity):
                self._state.bind(task, place)
                return
        if task.state is TaskState.ASSIGNED:
            self._wait(task, "its move was abandoned and its old place is taken", now_ms)

    def _can_stay(self, instance: Instance) -> bool:
        return not instance.doomed and (instance.ready or instance.state is InstanceState.DRAINING)

    def lose_home(self, task: Task, reason: str, now_ms: int, out: list[Command]) -> None:
        """The place that this task is bound for, without a copy there, is no more."""
        job = task.job
        if job.state is JobState.PREPARING:
            self._abandon_preparing(job, now_ms, out)
        elif task.state is TaskState.ASSIGNED:
            self._wait(task, reason, now_ms)
        else:
            self._state.bind(task, None)
            task.reason = reason

    def _abandon_preparing(self, job: Job, now_ms: int, out: list[Command]) -> None:
        job.step(JobStep.ABANDON, now_ms)
        returned = []
        for task in job.tasks:
            place = task.instance
            if place is not None and place is not task.home:
                self._provisioner.retain(place)
                self._state.bind(task, place)
                returned.append(place)
        self._state.dirty_tasks = True
        for place in returned:
            self._resolve_overflow(place, now_ms, out)

    def _resolve_overflow(self, instance: Instance, now_ms: int, out: list[Command]) -> None:
        """Turn away what is bound for an instance until the rest fits; last come, first to go."""
        while instance.overflows():
            coming = [
                task
                for task in instance.bound.values()
                if task.instance is not instance or task.state is TaskState.CHECKPOINTING
            ]
            away = [task for task in coming if task.instance is not instance] or coming
            self.lose_home(away[-1], f"no room on {instance.id} after all", now_ms, out)

    # Stopping

    def stop(self, job: Job, ending: Ending, reason: str, now_ms: int, out: list[Command]) -> None:
        """Stop every copy without a checkpoint; what comes then is `ending`."""
        self._begin_stopping(job, ending, reason, now_ms)
        for task in job.tasks:
            if task.state is TaskState.ASSIGNED:
                self._wait(task, reason, now_ms)
            elif task.has_copy and task.state is not TaskState.STOPPING:
                task.step(TaskStep.STOP, now_ms)
                self._state.bind(task, None)
                self._order_stop(task, out)
        self._conclude(job, now_ms)

    def evict(self, job: Job, reason: str, now_ms: int, out: list[Command]) -> None:
        """Stop every copy with a checkpoint where it runs, to be placed anew at once."""
        job.urgent = True
        self._begin_stopping(job, Ending.REQUEUE, reason, now_ms)
        for task in job.tasks:
            if task.state is TaskState.ASSIGNED:
                self._wait(task, reason, now_ms)
            elif task.state is TaskState.RUNNING:
                self._state.bind(task, None)
                self._checkpoint(task, now_ms, out)
            elif task.state is TaskState.STARTING:
                task.step(TaskStep.STOP, now_ms)
                self._state.bind(task, None)
                self._order_stop(task, out)
            elif task.state is TaskState.CHECKPOINTING:
                self._state.bind(task, None)
        self._conclude(job, now_ms)

    def cancel(self, job: Job, now_ms: int, out: list[Command]) -> None:
        if job.state is JobState.QUEUED:
            self._close(job, JobStep.CANCEL, "cancelled", now_ms)
        else:
            self.stop(job, Ending.CANCEL, "cancelled", now_ms, out)

    def give_up(self, job: Job, reason: str, now_ms: int) -> None:
        """End a queued job that may not run any more."""
        self._close(job, JobStep.FAIL, reason, now_ms)

    def fail_attempt(self, job: Job, reason: str, now_ms: int, out: list[Command]) -> None:
        """A failure of the job's own making: try again later, or give up."""
        if job.state is JobState.STOPPING and job.ending is not Ending.REQUEUE:
            self._conclude(job, now_ms)
            return
        job.failures += 1
        if job.failures > job.spec.retries:
            self.stop(job, Ending.FAIL, reason, now_ms, out)
        else:
            wait = self._settings.backoff_rounds(job.failures)
            job.not_before_round = self._state.round + wait
            self.stop(job, Ending.RETRY, reason, now_ms, out)

    def disturb(self, job: Job, reason: str, now_ms: int, out: list[Command]) -> None:
        """A failure to start that is not the job's fault: no retry is used up, but it waits."""
        job.disturbances += 1
        wait = self._settings.backoff_rounds(job.disturbances)
        job.not_before_round = self._state.round + wait
        self.stop(job, Ending.REQUEUE, reason, now_ms, out)

    # Proofs of stop

    def stopped(self, task: Task, reason: str, now_ms: int, out: list[Command]) -> None:
        """The copy is gone, with or without a checkpoint."""
        job, expected = task.job, task.state in (TaskState.CHECKPOINTING, TaskState.STOPPING)
        home = task.home
        self._remove_copy(task, TaskStep.STOPPED, now_ms, out)
        if not expected:
            self._state.bind(task, None)
            self.stop(job, Ending.REQUEUE, reason, now_ms, out)
            return
        if home is not None:
            task.step(TaskStep.ASSIGN, now_ms)
        self._after_stop(job, now_ms, out)

    def exited(self, task: Task, exit_code: int, now_ms: int, out: list[Command]) -> None:
        job = task.job
        restarting = job.state is JobState.STOPPING and job.ending is not Ending.REQUEUE
        if exit_code == 0 and not restarting:
            self._state.bind(task, None)
            self._remove_copy(task, TaskStep.EXITED, now_ms, out)
            self._task_done(job, now_ms, out)
            return
        self._state.bind(task, None)
        self._remove_copy(task, TaskStep.STOPPED, now_ms, out)
        if exit_code == 0:
            self._conclude(job, now_ms)
        else:
            self.fail_attempt(job, f"{task.id} exited with {exit_code}", now_ms, out)

    def start_failed(
        self, task: Task, event: TaskStartFailed, now_ms: int, out: list[Command]
    ) -> None:
        job = task.job
        self._state.bind(task, None)
        self._remove_copy(task, TaskStep.STOPPED, now_ms, out)
        reason = f"{task.id} did not start: {event.reason}"
        if job.state is JobState.STOPPING:
            self._conclude(job, now_ms)
        elif event.infrastructure:
            self.disturb(job, reason, now_ms, out)
        else:
            self.fail_attempt(job, reason, now_ms, out)

    def copy_lost(self, task: Task, reason: str, now_ms: int, out: list[Command]) -> None:
        """The instance under the copy is gone, which is proof enough."""
        job = task.job
        self._state.bind(task, None)
        self._remove_copy(task, TaskStep.STOPPED, now_ms, out)
        if job.state is JobState.STOPPING:
            self._conclude(job, now_ms)
        else:
            self.stop(job, Ending.REQUEUE, reason, now_ms, out)

    # Details

    def _checkpoint(self, task: Task, now_ms: int, out: list[Command]) -> None:
        task.step(TaskStep.CHECKPOINT, now_ms)
        task.attempt += 1
        if task.instance is not None:
            out.append(CheckpointTask(task.id, task.epoch, task.instance.id, task.attempt))

    def _order_stop(self, task: Task, out: list[Command]) -> None:
        if task.instance is not None and task.instance.state is not InstanceState.GONE:
            out.append(StopTask(task.id, task.epoch, task.instance.id))

    def _wait(self, task: Task, reason: str, now_ms: int) -> None:
        """From bound to waiting; a job that has nothing left is queued again."""
        task.step(TaskStep.UNASSIGN, now_ms)
        self._state.bind(task, None)
        task.reason = reason
        self._state.dirty_tasks = True
        job = task.job
        if job.state is JobState.STARTING and _nothing_placed(job):
            job.step(JobStep.UNPLACE, now_ms)

    def _remove_copy(self, task: Task, step: TaskStep, now_ms: int, out: list[Command]) -> None:
        task.step(step, now_ms)
        left = self._state.vacate(task)
        self._state.dirty_tasks = True
        self._provisioner.copy_left(left, out)
        self.start_on(left, now_ms, out)

    def _after_stop(self, job: Job, now_ms: int, out: list[Command]) -> None:
        if job.state is JobState.MOVING:
            self._settle(job, now_ms, out)
        elif job.state is JobState.STOPPING:
            self._conclude(job, now_ms)
        else:
            self._start_all(job, now_ms, out)

    def _settle(self, job: Job, now_ms: int, out: list[Command]) -> None:
        """The move is over when nothing is being stopped any more."""
        if job.being_stopped or job.state is not JobState.MOVING:
            return
        job.step(JobStep.SETTLE, now_ms)
        self._state.dirty_tasks = True
        if _nothing_placed(job):
            job.step(JobStep.UNPLACE, now_ms)
            return
        self._check_all_run(job, now_ms)
        self._start_all(job, now_ms, out)

    def _start_all(self, job: Job, now_ms: int, out: list[Command]) -> None:
        for task in job.tasks:
            self.try_start(task, now_ms, out)

    def _check_all_run(self, job: Job, now_ms: int) -> None:
        if job.state is JobState.STARTING and job.settled == len(job.tasks):
            job.step(JobStep.ALL_RUN, now_ms)
            job.disturbances = 0
            self._state.dirty_tasks = True

    def _task_done(self, job: Job, now_ms: int, out: list[Command]) -> None:
        job.done += 1
        if job.done == len(job.tasks):
            self._close(job, JobStep.FINISH, "", now_ms)
        elif job.state is JobState.PREPARING:
            self._abandon_preparing(job, now_ms, out)
        else:
            self._check_all_run(job, now_ms)
            self._after_stop(job, now_ms, out)

    def _begin_stopping(self, job: Job, ending: Ending, reason: str, now_ms: int) -> None:
        if job.state is not JobState.STOPPING:
            job.step(JobStep.STOP, now_ms)
            job.ending = ending
            job.reason = reason
        elif job.ending is None or _STRENGTH[ending] > _STRENGTH[job.ending]:
            job.ending = ending
            job.reason = reason
        self._state.dirty_tasks = True

    def _conclude(self, job: Job, now_ms: int) -> None:
        """What was waited for has stopped: do what comes then."""
        if job.being_stopped or job.state is not JobState.STOPPING or job.ending is None:
            return
        self._state.dirty_tasks = True
        if job.ending in _ENDINGS:
            self._close(job, _ENDINGS[job.ending], job.reason, now_ms)
            return
        if job.ending is Ending.RETRY:
            for task in job.tasks:
                if task.state is TaskState.DONE:
                    task.step(TaskStep.RESET, now_ms)
            job.done = 0
        job.ending = None
        job.step(JobStep.UNPLACE, now_ms)
        self._state.replan = self._state.replan or job.urgent
        job.urgent = False
        for task in job.tasks:
            task.reason = job.reason

    def _close(self, job: Job, step: JobStep, reason: str, now_ms: int) -> None:
        """The job is over: it leaves the indices, a record stays."""
        state = self._state
        job.step(step, now_ms)
        for task in job.tasks:
            state.bind(task, None)
            del state.tasks[task.id]
        del state.jobs[job.id]
        state.limited.pop(job.id, None)
        state.on_spot.pop(job.id, None)
        state.events += 1
        state.dirty_tasks = True
        state.records[job.id] = JobRecord(
            job.id,
            job.spec.name,
            job.state,
            job.submitted_ms,
            job.first_start_ms,
            now_ms,
            job.failures,
            job.migrations,
            reason,
        )


def _nothing_placed(job: Job) -> bool:
    return all(task.state in (TaskState.WAITING, TaskState.DONE) for task in job.tasks)
