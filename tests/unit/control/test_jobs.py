"""The life of a job: placed, failed, tried again, cancelled, over time, done."""

from __future__ import annotations

import pytest

from eva.control.commands import ComputePlan, LaunchInstance, StartTask, StopTask, TerminateInstance
from eva.control.events import (
    InstanceAcquired,
    InstanceLost,
    InstanceTerminated,
    InstanceUnreachable,
    JobCancelled,
    JobSubmitted,
    LaunchRefused,
    PlanComputed,
    PlanFailed,
    RoundDue,
    TaskExited,
    TaskStarted,
    TaskStartFailed,
    TaskStopped,
)
from eva.control.lifecycle import JobState, TaskState
from eva.model.errors import InvariantError
from eva.model.ids import InstanceId, JobId, TaskId
from eva.model.plan import ClusterPlan, Unplaceable
from tests.unit.control.bench import BIG, SMALL, Bench, of

A, I1 = TaskId("a.0"), InstanceId("i-1")


def test_from_submission_to_the_end() -> None:
    bench = Bench()
    bench.submit("a")
    assert of(LaunchInstance, bench.round((SMALL, ("a.0",)))) == [LaunchInstance(I1, SMALL)]
    assert of(StartTask, bench.ready("i-1")) == [StartTask(A, 1, I1)]
    bench.send(TaskStarted(A, 1), TaskExited(A, 1, 0))
    assert bench.state.records[JobId("a")].state is JobState.FINISHED
    assert not bench.state.tasks
    assert of(TerminateInstance, bench.round()) == [TerminateInstance(I1)]
    bench.send(InstanceTerminated(I1))
    assert not bench.state.instances
    assert bench.state.events == 2  # an arrival and a completion


def test_the_bill_runs_from_acquired_to_terminated() -> None:
    bench = Bench()
    bench.submit("a")
    bench.round((SMALL, ("a.0",)))
    assert bench.state.ledger.bill_micros(bench.now_ms) == 0
    bench.ready("i-1")
    acquired_ms = bench.state.ledger.open[I1].acquired_ms
    bench.now_ms += 3_600_000
    bench.send(InstanceLost(I1, at_ms=(acquired_ms or 0) + 3_600_000))
    assert bench.state.ledger.bill_micros(bench.now_ms + 10**9) == SMALL.hourly_micros


def test_word_of_acquisition_after_word_of_the_end_is_still_billed() -> None:
    bench = Bench()
    bench.submit("a")
    bench.round((SMALL, ("a.0",)))
    bench.now_ms += 3_600_000
    bench.send(InstanceLost(I1, at_ms=bench.now_ms), InstanceAcquired(I1, at_ms=3_600_000))
    paid_ms = bench.state.ledger.closed[0].uptime_ms(bench.now_ms)
    assert (
        bench.state.ledger.bill_micros(bench.now_ms) == SMALL.hourly_micros * paid_ms // 3_600_000
    )
    assert paid_ms > 0


def test_failures_wait_twice_as_long_each_time_and_end() -> None:
    bench = Bench()
    bench.submit("a", retries=2)
    waited = []
    for epoch in (1, 2, 3):
        bench.running((SMALL, ("a.0",)))
        bench.send(TaskExited(A, epoch, 1))
        if JobId("a") in bench.state.jobs:
            rounds = 0
            while bench.job("a").not_before_round > bench.state.round + 1:
                bench.round()
                rounds += 1
            waited.append(rounds)
    assert waited == [0, 1]
    record = bench.state.records[JobId("a")]
    assert (record.state, record.failures) == (JobState.FAILED, 3)
    assert "exited with 1" in record.reason


def test_infrastructure_failures_use_up_no_retries() -> None:
    bench = Bench()
    bench.submit("a")
    bench.round((SMALL, ("a.0",)))
    bench.send(LaunchRefused(I1, "no capacity"))
    assert bench.task("a.0").reason == "launch of i-1 refused"
    bench.adopt((BIG, ("a.0",)))
    bench.ready("i-2")
    bench.send(TaskStartFailed(A, 1, "disk full", infrastructure=True))
    bench.round(("i-2", ("a.0",)))
    bench.send(TaskStarted(A, 2), InstanceLost(InstanceId("i-2")))
    assert bench.job("a").state is JobState.QUEUED
    assert bench.job("a").failures == 0


def test_one_failing_task_fails_the_gang() -> None:
    bench = Bench()
    bench.submit("g", tasks=2)
    bench.running((BIG, ("g.0", "g.1")))
    commands = bench.send(TaskExited(TaskId("g.0"), 1, 137))
    assert [c.task for c in of(StopTask, commands)] == ["g.1"]
    bench.send(TaskStopped(TaskId("g.1"), 1))
    assert bench.state.records[JobId("g")].state is JobState.FAILED


@pytest.mark.parametrize("stage", ["queued", "starting", "running", "preparing", "stopping"])
def test_cancelled_at_any_stage(stage: str) -> None:
    bench = Bench()
    bench.submit("a", retries=1)
    if stage == "starting":
        bench.round((SMALL, ("a.0",)))
    elif stage != "queued":
        bench.running((SMALL, ("a.0",)))
    if stage == "preparing":
        bench.round((BIG, ("a.0",)))
    if stage == "stopping":
        bench.send(InstanceUnreachable(I1))
    assert bench.job("a").state.value == stage
    commands = bench.send(JobCancelled(JobId("a")))
    if stage in ("running", "preparing"):
        assert of(StopTask, commands) == [StopTask(A, 1, I1)]
        bench.send(TaskStopped(A, 1))
    if stage == "stopping":
        assert JobId("a") in bench.state.jobs  # the cloud has not said that its copy is gone
        bench.send(InstanceTerminated(I1))
    assert bench.state.records[JobId("a")].state is JobState.CANCELLED


def test_silence_is_no_proof_of_stop() -> None:
    bench = Bench()
    bench.submit("a")
    bench.running((SMALL, ("a.0",)))
    assert of(TerminateInstance, bench.send(InstanceUnreachable(I1)))
    assert bench.task("a.0").state is TaskState.STOPPING
    bench.send(InstanceTerminated(I1))
    assert bench.task("a.0").state is TaskState.WAITING


def test_running_longer_than_allowed() -> None:
    bench = Bench()
    bench.submit("a", max_duration_ms=10_000)
    bench.running((SMALL, ("a.0",)))
    bench.now_ms += 10_000
    assert of(StopTask, bench.send(RoundDue()))
    bench.send(TaskStopped(A, 1))
    assert "max_duration" in bench.state.records[JobId("a")].reason


def test_unplaceable_tasks_wait_with_the_reason() -> None:
    bench = Bench()
    bench.submit("a")
    bench.send(RoundDue())
    plan = ClusterPlan((), (Unplaceable(A, "needs 99 GPU"),))
    bench.send(PlanComputed(1, plan))
    assert bench.task("a.0").reason == "needs 99 GPU"


def test_second_submission_is_ignored_even_after_the_end() -> None:
    bench = Bench()
    job = bench.submit("a")
    bench.submit("a")
    assert bench.job("a") is job
    bench.send(JobCancelled(JobId("a")), JobSubmitted(JobId("a"), job.spec))
    assert not bench.state.jobs


def test_part_of_a_gang_is_not_placed() -> None:
    bench = Bench()
    bench.submit("g", tasks=2)
    assert not bench.round((SMALL, ("g.0",)))
    assert bench.job("g").state is JobState.QUEUED


def test_plan_is_checked_against_the_state_found() -> None:
    bench = Bench()
    bench.submit("a")
    bench.submit("b")
    bench.send(RoundDue(), JobCancelled(JobId("a")))
    assert len(of(LaunchInstance, bench.adopt((SMALL, ("a.0",)), (SMALL, ("b.0",))))) == 1
    bench.ready("i-1")
    assert not bench.adopt((SMALL, ("b.0",)))  # nobody asked


def test_a_plan_that_promises_too_much_is_cut() -> None:
    bench = Bench()
    for name in "abc":
        bench.submit(name)
    bench.round((BIG, ("a.0", "b.0", "c.0")))
    assert [bench.job(name).state.value for name in "abc"] == ["starting", "starting", "queued"]


def test_one_plan_at_a_time_and_a_failed_one_is_asked_for_again() -> None:
    bench = Bench()
    bench.submit("a")
    assert len(of(ComputePlan, bench.send(RoundDue(), RoundDue()))) == 1
    assert len(of(ComputePlan, bench.send(PlanFailed(1, "killed"), RoundDue()))) == 1


def test_only_full_plans_that_change_something_count() -> None:
    bench = Bench()
    bench.submit("a")
    bench.round((SMALL, ("a.0",)), chosen="full")
    bench.round(("i-1", ("a.0",)), chosen="full")
    assert bench.state.full_reconfigurations == 1


def test_time_that_goes_backwards_is_refused() -> None:
    bench = Bench()
    bench.submit("a")
    with pytest.raises(InvariantError, match="time went backwards"):
        bench.controller.handle(RoundDue(), 0)
