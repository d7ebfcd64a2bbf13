"""Moving jobs: prepare first, swap places, and what happens when a move fails."""

from __future__ import annotations

import pytest

from eva.control.commands import (
    CheckpointTask,
    ComputePlan,
    PrepareTask,
    StartTask,
    StopTask,
    TerminateInstance,
)
from eva.control.events import (
    CheckpointFailed,
    InstanceLost,
    InstanceReady,
    LaunchRefused,
    RoundDue,
    SpotNotice,
    TaskCheckpointed,
    TaskExited,
    TaskStarted,
    TaskStopped,
)
from eva.control.lifecycle import InstanceState, JobState, TaskState
from eva.control.settings import ControllerSettings
from eva.model.ids import InstanceId, TaskId
from tests.unit.control.bench import BIG, SMALL, Bench, of

A, B = TaskId("a.0"), TaskId("b.0")
I1, I2 = InstanceId("i-1"), InstanceId("i-2")


@pytest.fixture
def bench() -> Bench:
    """Job a on i-1 and job b on i-2, each alone on a small instance."""
    bench = Bench()
    bench.submit("a")
    bench.submit("b")
    bench.running((SMALL, ("a.0",)), (SMALL, ("b.0",)))
    return bench


def test_a_job_runs_on_until_its_target_is_registered(bench: Bench) -> None:
    commands = bench.round((BIG, ("a.0", "b.0")))
    assert not of(CheckpointTask, commands)
    assert bench.task("a.0").state is TaskState.RUNNING
    commands = bench.ready("i-3")
    assert {(c.task, c.instance) for c in of(PrepareTask, commands)} == {(A, "i-3"), (B, "i-3")}
    assert [c.task for c in of(CheckpointTask, commands)] == [A, B]


def test_stop_first_checkpoints_at_once() -> None:
    bench = Bench(ControllerSettings(migrate="stop-first"))
    bench.submit("a")
    bench.running((SMALL, ("a.0",)))
    commands = bench.round((BIG, ("a.0",)))
    assert [c.task for c in of(CheckpointTask, commands)] == [A]


def test_source_is_terminated_with_its_last_copy_and_the_task_starts_with_a_new_epoch(
    bench: Bench,
) -> None:
    bench.round((BIG, ("a.0",)), ("i-2", ("b.0",)))
    bench.ready("i-3")
    commands = bench.send(TaskCheckpointed(A, 1))
    assert of(TerminateInstance, commands) == [TerminateInstance(I1)]
    assert of(StartTask, commands) == [StartTask(A, 2, InstanceId("i-3"))]
    assert bench.job("a").migrations == 1


def test_two_tasks_swap_places_without_deadlock(bench: Bench) -> None:
    commands = bench.round(("i-1", ("b.0",)), ("i-2", ("a.0",)))
    assert len(of(CheckpointTask, commands)) == 2
    assert not of(StartTask, bench.send(TaskCheckpointed(A, 1)))  # b is still in its room
    commands = bench.send(TaskCheckpointed(B, 1))
    assert {(c.task, c.instance) for c in of(StartTask, commands)} == {(A, I2), (B, I1)}


def test_failed_checkpoint_keeps_the_task_and_turns_away_what_was_to_come(bench: Bench) -> None:
    bench.round(("i-1", ("b.0",)), ("i-2", ("a.0",)))
    bench.send(TaskCheckpointed(B, 1), CheckpointFailed(A, 1, 1, "disk full"))
    assert bench.task("a.0").state is TaskState.RUNNING
    assert bench.job("a").state is JobState.RUNNING
    assert bench.task("b.0").state is TaskState.WAITING
    assert "no room on i-1" in bench.task("b.0").reason
    assert of(StartTask, bench.round(("i-1", ("a.0",)), ("i-2", ("b.0",))))


def test_late_word_of_an_earlier_attempt_is_not_an_answer(bench: Bench) -> None:
    for attempt in (1, 2):
        bench.round((BIG, ("a.0",)), ("i-2", ("b.0",)))
        bench.ready(f"i-{2 + attempt}")
        bench.send(CheckpointFailed(A, 1, 1, "disk full"))
    assert bench.task("a.0").state is TaskState.CHECKPOINTING
    bench.send(CheckpointFailed(A, 1, 2, "disk full"))
    assert bench.task("a.0").state is TaskState.RUNNING


def test_drained_source_is_taken_back_when_the_target_is_refused(bench: Bench) -> None:
    bench.round((BIG, ("a.0",)), ("i-2", ("b.0",)))
    assert bench.state.instances[I1].state is InstanceState.DRAINING
    bench.send(LaunchRefused(InstanceId("i-3"), "no capacity"))
    assert bench.state.instances[I1].state is InstanceState.READY
    assert bench.job("a").state is JobState.RUNNING


def test_all_tasks_of_a_gang_stop_before_any_starts_again() -> None:
    bench = Bench()
    bench.submit("g", tasks=2)
    bench.running((SMALL, ("g.0",)), (SMALL, ("g.1",)))
    bench.round((SMALL, ("g.0",)), ("i-2", ("g.1",)))
    commands = bench.ready("i-3")
    assert [c.task for c in of(CheckpointTask, commands)] == ["g.0", "g.1"]
    assert not of(StartTask, bench.send(TaskCheckpointed(TaskId("g.0"), 1)))
    commands = bench.send(TaskCheckpointed(TaskId("g.1"), 1))
    assert {(c.task, c.instance) for c in of(StartTask, commands)} == {
        ("g.0", "i-3"),
        ("g.1", "i-2"),
    }


def test_lost_instance_restarts_the_whole_gang_only_after_proof_of_stop() -> None:
    bench = Bench()
    bench.submit("g", tasks=2)
    bench.running((SMALL, ("g.0",)), (SMALL, ("g.1",)))
    assert [c.task for c in of(StopTask, bench.send(InstanceLost(I1)))] == ["g.1"]
    bench.round(("i-2", ()))
    assert bench.snapshot is not None
    assert not bench.snapshot.tasks  # not to be planned for while a copy may run
    bench.send(TaskStopped(TaskId("g.1"), 1))
    assert bench.job("g").state is JobState.QUEUED
    assert bench.job("g").failures == 0


def test_spot_notice_checkpoints_at_once_and_leaves_the_instance(bench: Bench) -> None:
    commands = bench.send(SpotNotice(I1, 999_000))
    assert [c.task for c in of(CheckpointTask, commands)] == [A]
    commands = bench.send(TaskCheckpointed(A, 1))
    assert of(TerminateInstance, commands) == [TerminateInstance(I1)]
    assert bench.job("a").state is JobState.QUEUED


def test_a_plan_is_asked_for_as_soon_as_what_was_taken_back_has_stopped(bench: Bench) -> None:
    bench.send(SpotNotice(I1, 999_000), SpotNotice(I1, 999_000))
    (ask,) = of(ComputePlan, bench.send(TaskCheckpointed(A, 1)))
    assert (A, None) in [(task.id, task.instance) for task in ask.snapshot.tasks]
    assert I1 not in [instance.id for instance in ask.snapshot.instances]


def test_nothing_is_placed_on_what_is_taken_back_by_a_plan_of_before() -> None:
    bench = Bench()
    bench.submit("a")
    bench.running((BIG, ("a.0",)))
    bench.submit("late")
    bench.send(RoundDue(), SpotNotice(I1, 999_000))
    commands = bench.adopt((I1, ("a.0", "late.0")))
    assert bench.task("late.0").home is None
    assert not of(ComputePlan, commands)
    assert of(ComputePlan, bench.send(TaskCheckpointed(A, 1)))


def test_who_waits_for_an_instance_that_is_taken_back_is_planned_for_at_once() -> None:
    bench = Bench()
    bench.submit("gang", tasks=2)
    bench.round((BIG, ("gang.0",)), (SMALL, ("gang.1",)))
    (ask,) = of(ComputePlan, bench.send(InstanceReady(I1), SpotNotice(I2, 999_000)))
    assert ("gang.1", None) in [(task.id, task.instance) for task in ask.snapshot.tasks]


def test_what_could_not_be_saved_starts_elsewhere_once_the_cloud_says_it_is_gone(
    bench: Bench,
) -> None:
    bench.send(SpotNotice(I1, 999_000))
    commands = bench.send(CheckpointFailed(A, 1, 1, "no answer"))
    assert [c.task for c in of(StopTask, commands)] == [A]
    assert not of(ComputePlan, commands)
    commands = bench.send(InstanceLost(I1))
    assert of(ComputePlan, commands)
    assert bench.job("a").failures == 0


def test_words_about_an_old_copy_change_nothing(bench: Bench) -> None:
    bench.round((BIG, ("a.0",)), ("i-2", ("b.0",)))
    bench.ready("i-3")
    bench.send(TaskCheckpointed(A, 1), TaskStarted(A, 2))
    for late in (TaskExited(A, 1, 1), TaskCheckpointed(A, 1), TaskStopped(A, 1), TaskStarted(A, 2)):
        assert not bench.send(late)
    assert bench.job("a").state is JobState.RUNNING
    assert bench.job("a").failures == 0
