"""What goes over the wire comes back the same, and the generated code is that of the proto."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as hs

from eva.adapters.grpc import translate
from eva.adapters.grpc.generated import worker_pb2 as pb
from eva.model.ids import InstanceId, JobId, TaskId
from eva.model.resources import Resources
from eva.ports import workers
from eva.ports.runtime import Argv, ExitKind, ImageReference, Script
from eva.ports.storage import WorkdirDigest
from eva.ports.workers import (
    CheckpointPolicy,
    Copy,
    CopyState,
    DockerfileBuild,
    GangPlace,
    Order,
    Report,
    StartOrder,
    TaskRun,
    TaskSample,
    WorkerHello,
)
from tests.support.requirements import REPOSITORY

text = hs.text(hs.characters(exclude_categories=["Cs"]), max_size=20)
count = hs.integers(0, 2**40)
tasks = hs.builds(TaskId, text)
resources = hs.builds(Resources, count, count, count)
runs = hs.builds(
    TaskRun,
    program=hs.one_of(
        hs.none(),
        hs.builds(Argv, hs.lists(text, min_size=1).map(tuple)),
        hs.builds(Script, text, text),
    ),
    demand=resources,
    image=hs.one_of(
        hs.none(),
        hs.builds(ImageReference, text),
        hs.builds(DockerfileBuild, text, hs.lists(hs.tuples(text, text)).map(tuple)),
    ),
    env=hs.dictionaries(text, text),
    workdir=hs.none() | hs.text(min_size=1, max_size=5, alphabet="abc").map(WorkdirDigest),
    shm_mib=hs.none() | count,
    checkpoint=hs.builds(CheckpointPolicy, count, hs.none() | hs.integers(1, 64), hs.booleans()),
    progress_regex=hs.none() | hs.just(r"step (\d+)"),
    window_ms=count,
    gang=hs.builds(
        GangPlace,
        hs.integers(0, 9),
        hs.integers(0, 9),
        hs.lists(text).map(tuple),
        hs.integers(0, 65_535),
        hs.none() | hs.just("net"),
    ),
    stop_signal=hs.integers(1, 64),
    stop_grace_ms=count,
)
orders: hs.SearchStrategy[Order] = hs.one_of(
    hs.builds(workers.PrepareOrder, hs.builds(JobId, text), tasks, runs),
    hs.builds(workers.StartOrder, hs.builds(JobId, text), tasks, count, runs),
    hs.builds(workers.CheckpointOrder, tasks, count, count),
    hs.builds(workers.StopOrder, tasks, count),
)
maybe = hs.none() | count
reports: hs.SearchStrategy[Report] = hs.one_of(
    hs.builds(workers.Started, tasks, count, count),
    hs.builds(workers.StartFailed, tasks, count, text, hs.booleans()),
    hs.builds(workers.Checkpointed, tasks, count, count, text, maybe, count),
    hs.builds(workers.CheckpointFailed, tasks, count, count, text),
    hs.builds(workers.Stopped, tasks, count, text),
    hs.builds(
        workers.Exited,
        tasks,
        count,
        hs.integers(-300, 300),
        hs.sampled_from(ExitKind),
        text,
        maybe,
    ),
    hs.builds(workers.SpotNoticed, count),
)


@given(orders)
def test_orders_come_back_the_same(order: Order) -> None:
    wire = pb.FromMaster.FromString(translate.order_to_wire(order).SerializeToString())
    assert translate.order_from_wire(wire) == order


@given(count, reports)
def test_reports_come_back_the_same(number: int, report: Report) -> None:
    content = translate.report_to_wire(number, report).SerializeToString()
    wire = pb.NumberedReport.FromString(content)
    assert wire.number == number
    assert translate.report_from_wire(wire) == report


@given(
    hs.builds(
        WorkerHello,
        hs.builds(InstanceId, text),
        resources,
        text,
        hs.lists(hs.builds(Copy, tasks, count, hs.sampled_from(CopyState))).map(tuple),
        text,
        text,
        count,
    )
)
def test_hellos_come_back_the_same(hello: WorkerHello) -> None:
    assert translate.hello_from_wire(translate.hello_to_wire(hello, 1)) == hello


@given(hs.builds(TaskSample, tasks, count, maybe, hs.none() | hs.floats(0, 1e9)))
def test_samples_come_back_the_same(sample: TaskSample) -> None:
    assert translate.sample_from_wire(translate.sample_to_wire(sample)) == sample


def test_every_report_and_order_has_its_place_on_the_wire() -> None:
    assert set(translate.REPORTS.values()) == set(workers.Report.__args__)
    assert set(translate.ORDERS.values()) == set(workers.Order.__args__)


def test_a_message_of_a_newer_peer_is_none_to_us() -> None:
    assert translate.report_from_wire(pb.NumberedReport(number=3)) is None
    assert translate.order_from_wire(pb.FromMaster(welcome=pb.Welcome())) is None


def test_secrets_of_a_start_are_not_kept() -> None:
    run = TaskRun(Argv(("a",)), env={"TOKEN": "hush-hush"})
    kept = translate.start_to_bytes(StartOrder(JobId("j"), TaskId("j.0"), 1, run))
    assert b"hush-hush" not in kept
    assert translate.start_from_bytes(kept).run.program == Argv(("a",))


@pytest.mark.parametrize("name", ["worker_pb2.py", "worker_pb2.pyi"])
def test_generated_code_is_that_of_the_proto(tmp_path: Path, name: str) -> None:
    subprocess.run(
        [REPOSITORY / "proto/generate.sh", tmp_path],
        check=True,
        env={**os.environ, "PYTHON": sys.executable},
    )
    package = "eva/adapters/grpc/generated"
    committed = REPOSITORY / "src" / package / name
    assert committed.read_text() == (tmp_path / package / name).read_text(), "run proto/generate.sh"


def test_half_characters_are_replaced_and_end_no_session() -> None:
    """One order or report that cannot be put into words would keep a worker away for good."""
    run = TaskRun(program=Argv(("echo", "\ud800")), env={"A": "\udfff"})
    order = translate.order_from_wire(
        translate.order_to_wire(StartOrder(JobId("j"), TaskId("j.0"), 1, run))
    )
    assert isinstance(order, StartOrder)
    assert order.run.program == Argv(("echo", "?"))
    assert order.run.env == {"A": "?"}
