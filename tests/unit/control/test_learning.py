"""ThroughputMonitor and Profiler: what is reported, and what comes to stand in the table."""

from __future__ import annotations

import pytest

from eva.control.events import RoundDue, TaskExited, ThroughputReported, ThroughputSample
from eva.model.ids import TaskId, Workload
from eva.model.jobs import UNSTATED
from tests.unit.control.bench import BIG, SMALL, Bench

A, B = Workload("a"), Workload("b")


def sample(task: str, rate: float, epoch: int = 1) -> ThroughputReported:
    return ThroughputReported((ThroughputSample(TaskId(task), epoch, rate),))


@pytest.fixture
def pair() -> Bench:
    bench = Bench()
    bench.submit("a")
    bench.submit("b")
    bench.running((BIG, ("a.0", "b.0")))
    return bench


def test_an_instance_counts_once_all_of_its_tasks_report(pair: Bench) -> None:
    pair.send(sample("a.0", 8.0), RoundDue())
    assert pair.state.table.recorded(A, (B,)) is None
    pair.send(sample("b.0", 12.0), RoundDue())
    assert pair.state.table.recorded(A, (B,)) == pytest.approx(0.8)
    assert pair.state.table.recorded(B, (A,)) == 1.0  # never above


def test_samples_of_old_copies_and_zeros_are_ignored(pair: Bench) -> None:
    pair.send(sample("a.0", 5.0, epoch=9), sample("a.0", 0.0), sample("b.0", 9.0), RoundDue())
    assert len(pair.state.table) == 0


def test_nothing_new_leaves_the_very_same_parts_in_the_snapshot(pair: Bench) -> None:
    pair.send(sample("a.0", 8.0), sample("b.0", 9.0))
    keep = ("i-1", ("a.0", "b.0"))
    pair.round(keep)
    first = pair.snapshot
    pair.round(keep)
    second = pair.snapshot
    assert first is not None
    assert second is not None
    assert second is not first
    assert second.tasks is first.tasks
    assert second.instances is first.instances
    assert second.table is first.table
    pair.send(TaskExited(TaskId("a.0"), 1, 0))
    pair.round(("i-1", ("b.0",)))
    assert pair.snapshot is not None
    assert pair.snapshot.tasks is not first.tasks
    assert pair.snapshot.tasks[0] is first.tasks[1]


def test_standalone_speed_is_measured_alone_and_used_from_then_on() -> None:
    bench = Bench()
    bench.submit("a", throughput=UNSTATED)
    bench.running((SMALL, ("a.0",)))
    bench.send(sample("a.0", 4.0), RoundDue())
    assert bench.state.standalone == {(A, "p3"): 4.0}
    bench.adopt(("i-1", ("a.0",)))
    bench.submit("b")
    bench.round((BIG, ("a.0", "b.0")))
    assert len(bench.state.table) == 0


def test_unstated_speed_is_not_measured_beside_others() -> None:
    bench = Bench()
    bench.submit("a", throughput=UNSTATED)
    bench.submit("b")
    bench.running((BIG, ("a.0", "b.0")))
    bench.send(sample("a.0", 4.0), sample("b.0", 9.0), RoundDue())
    assert not bench.state.standalone
    assert len(bench.state.table) == 0


def test_the_profiler_wants_the_whole_job_alone() -> None:
    bench = Bench()
    bench.submit("a", tasks=2, throughput=UNSTATED)
    bench.submit("b")
    bench.running((SMALL, ("a.0",)), (BIG, ("a.1", "b.0")))
    bench.send(sample("a.0", 4.0), RoundDue())
    assert not bench.state.standalone
