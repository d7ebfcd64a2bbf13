"""The paper's traces: the number of jobs, the two tables, and facts restated in the code."""

from __future__ import annotations

import csv
import json
import math
import time
from pathlib import Path
from typing import Any

import pytest

from eva.inputs.catalogs import builtin
from eva.model.units import MIB_PER_GB, MILLIS_PER_CPU, MS_PER_HOUR, MS_PER_SECOND
from eva.scheduling.reservation_price import price_book
from eva.traces.drawing import Drawing, Durations
from eva.traces.interference import MEASURED, load_interference
from eva.traces.load import load_trace
from eva.traces.statistics import PUBLISHED_DURATIONS, PUBLISHED_GPU_MIX, statistics_of
from eva.traces.trace import Trace, TraceJob
from eva.traces.workloads import KINDS, WORKLOADS, kind_of
from tests.support.requirements import require, shared_folder

PAPER = builtin("paper")


@pytest.fixture(scope="module")
def data() -> Path:
    folder = shared_folder()
    require(folder, "the folder of published traces (EVA_SHARED, or ../shared)")
    assert folder is not None
    return folder / "data"


@pytest.fixture(scope="module")
def alibaba(data: Path) -> Trace:
    return load_trace(data / "openb_pod_list_default.csv", PAPER)


@pytest.fixture(scope="module")
def full_gavel(data: Path) -> Trace:
    return load_trace(data / "pai_full_gavel.json.gz", PAPER)


def test_alibabas_pods_are_the_papers_6274_jobs(alibaba: Trace) -> None:
    assert len(alibaba) == 6_274
    failed, too_large = alibaba.notices
    assert failed == "left out 1,870 pods that failed"
    assert "dropped 8 of 6,282 pods" in too_large
    assert "2 of 8 GPU, 65 CPU, 257 GB; 6 of 8 GPU, 88 CPU, 320 GB" in too_large


def test_they_are_the_jobs_of_the_artifact_in_the_same_order(
    alibaba: Trace, full_gavel: Trace
) -> None:
    ours, theirs = (
        [job.spec.tasks[0].demand for job in trace.jobs] for trace in (alibaba, full_gavel)
    )
    assert ours == theirs


def test_durations_are_the_published_ones(alibaba: Trace, full_gavel: Trace) -> None:
    for trace, name in ((alibaba, "alibaba"), (full_gavel, "gavel")):
        found, published = statistics_of(trace).duration_hours, PUBLISHED_DURATIONS[name]
        assert round(found.mean, 1) == published.mean
        assert round(found.median, 1) == published.median
        assert round(found.p80, 1) == published.p80
        assert round(found.p95, 1) == published.p95


def test_our_gavel_durations_are_near_the_published_ones(data: Path) -> None:
    drawing = Drawing(1, Durations.GAVEL)
    trace = load_trace(data / "openb_pod_list_default.csv", PAPER, drawing=drawing)
    found, published = statistics_of(trace).duration_hours, PUBLISHED_DURATIONS["gavel"]
    assert found.mean == pytest.approx(published.mean, rel=0.05)
    assert found.median == pytest.approx(published.median, rel=0.1)
    assert found.p95 == pytest.approx(published.p95, rel=0.1)


def test_the_published_gpu_mix_counts_failed_pods(data: Path, tmp_path: Path) -> None:
    """Of all pods that some type can host; without the failed ones the mix is another."""
    text = (data / "openb_pod_list_default.csv").read_text()
    forgiven = tmp_path / "forgiven.csv"
    forgiven.write_text(text.replace(",Failed,", ",Succeeded,"))
    trace = load_trace(forgiven, PAPER)
    assert len(trace) == 8_111
    mix = {gpus: round(share, 4) for gpus, share in statistics_of(trace).gpu_mix.items()}
    assert mix == PUBLISHED_GPU_MIX


def test_the_artifacts_200_jobs(data: Path) -> None:
    trace = load_trace(data / "pai_200.json", PAPER)
    assert len(trace) == trace.tasks == 200
    first = trace.jobs[0]
    assert (first.id, first.arrival_ms, first.total_iterations) == ("0", 960_000, 26_103)
    assert statistics_of(trace).distinct_workloads == 36


@pytest.mark.parametrize(
    ("name", "published_usd"),
    [("pai_200.json", 20_736.38), ("pai_full_gavel.json.gz", 831_227.28)],
)
def test_every_job_on_an_instance_of_its_own_costs_what_is_published(
    data: Path, name: str, published_usd: float
) -> None:
    """No-Packing in closed form: from the round after the arrival to the round after the end."""
    micros = sum(_cost_alone_micros(job) for job in load_trace(data / name, PAPER).jobs)
    assert micros / 1e6 == pytest.approx(published_usd, rel=1e-4)


def _cost_alone_micros(job: TraceJob) -> float:
    price = price_book(PAPER).price(job.spec.tasks[0])
    assert price is not None
    delays = price.type.delays
    acquired_ms = _next_round_ms(job.arrival_ms) + delays.acquire_ms
    launch_ms = job.spec.tasks[0].delays.launch_ms
    work_ms = job.total_iterations / job.throughput_per_s * MS_PER_SECOND
    end_ms = _next_round_ms(acquired_ms + delays.setup_ms + launch_ms + work_ms)
    billed_ms = end_ms + delays.terminate_ms - acquired_ms
    return price.hourly_micros * billed_ms / MS_PER_HOUR


def _next_round_ms(time_ms: float) -> int:
    return math.ceil(time_ms / 300_000) * 300_000


def test_phases_are_those_of_the_artifacts_traces(full_gavel: Trace) -> None:
    seen = set()
    for job in full_gavel.jobs:
        kind = KINDS[kind_of(job.spec.tasks[0].workload)]
        assert job.phases == (kind.phases,)
        assert job.throughput_per_s == pytest.approx(kind.throughput_per_s, rel=5e-4)
        seen.add(kind.name)
    assert seen == set(KINDS)


def test_workload_facts(data: Path) -> None:
    with (data / "workloads.csv").open() as file:
        rows = {row["workload"]: row for row in csv.DictReader(file)}
    assert set(rows) == {it.name for it in WORKLOADS}
    for it in WORKLOADS:
        row = rows[it.name]
        assert (it.kind.name, it.tasks) == (row["trace_name"], int(row["tasks"]))
        assert it.description in row["description"]
        for family, column in (("p3", "cpus_on_p3"), ("c7i", "cpus_on_c7i_r7i")):
            assert it.demand.on(family) == (
                int(row["gpus"]),
                int(row[column]) * MILLIS_PER_CPU,
                int(row["memory_gb"]) * MIB_PER_GB,
            )
        assert it.demand.on("r7i") == it.demand.on("c7i")
        phases = it.kind.phases
        assert phases.fetch_ms + phases.upload_ms == int(row["checkpoint_s"]) * MS_PER_SECOND
        assert phases.init_ms == int(row["launch_s"]) * MS_PER_SECOND
        assert it.throughput_per_s == float(row["throughput_per_s"])


def test_interference_facts(data: Path) -> None:
    assert load_interference(data / "interference.csv").matrix == MEASURED.matrix


def test_published_statistics(data: Path) -> None:
    published: dict[str, Any] = json.loads((data / "published.json").read_text())
    mix = {str(gpus): share for gpus, share in PUBLISHED_GPU_MIX.items()}
    assert mix == published["alibaba_gpu_mix"]
    durations = {name: summary.as_json() for name, summary in PUBLISHED_DURATIONS.items()}
    assert durations == published["duration_hours"]


def test_the_full_trace_loads_in_well_under_a_second(data: Path) -> None:
    took_s = []
    for _ in range(3):  # the best of three: the machine is shared
        before = time.process_time()
        load_trace(data / "pai_full_gavel.json.gz", PAPER)
        took_s.append(time.process_time() - before)
    assert min(took_s) < 0.8
