"""What a task waits for, told on its way from submission to its second instance."""

from __future__ import annotations

from eva.control.events import InstanceAcquired, InstanceReady, RoundDue, TaskStarted
from eva.master.waiting import why
from eva.model.ids import InstanceId, TaskId
from tests.unit.control.bench import BIG, SMALL, Bench


def test_from_submission_to_running() -> None:
    bench = Bench()
    bench.submit("train")
    assert told(bench, "train.0") == "is planned for in round 1"
    bench.round((SMALL, ("train.0",)))
    assert told(bench, "train.0") == "waits for i-1, a small that the cloud was asked for"
    bench.send(InstanceAcquired(InstanceId("i-1")))
    assert told(bench, "train.0") == "waits for i-1, a small, to boot"
    bench.send(InstanceReady(InstanceId("i-1")))
    assert told(bench, "train.0") == "image, files and storage are made ready"
    bench.send(TaskStarted(TaskId("train.0"), 1))
    assert told(bench, "train.0") == ""


def test_a_gang_waits_for_its_last_member() -> None:
    bench = Bench()
    bench.submit("gang", tasks=2)
    bench.round((SMALL, ("gang.0",)), (SMALL, ("gang.1",)))
    bench.ready("i-1")
    assert told(bench, "gang.0") == "starts together with gang.1"
    assert told(bench, "gang.1") == "waits for i-2, a small that the cloud was asked for"


def test_a_task_that_is_to_move_says_that_it_runs_on() -> None:
    bench = Bench()
    bench.submit("train")
    bench.running((BIG, ("train.0",)))
    bench.send(RoundDue())
    bench.adopt((SMALL, ("train.0",)))
    assert told(bench, "train.0") == "runs on until i-2 is ready for it"
    bench.ready("i-2")
    assert told(bench, "train.0") == "saves its progress"


def told(bench: Bench, task: str) -> str:
    return why(bench.task(task), bench.state.round)


def test_of_a_large_gang_some_are_named() -> None:
    bench = Bench()
    bench.submit("gang", tasks=6)
    bench.round(*((SMALL, (f"gang.{index}",)) for index in range(6)))
    bench.ready("i-1")
    assert told(bench, "gang.0") == "starts together with gang.1, gang.2, gang.3 and 2 more"
