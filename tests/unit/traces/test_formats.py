"""Every format reads into the same trace, and writing one keeps everything."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eva.model.errors import InputError
from eva.model.ids import JobId, Workload
from eva.model.resources import Demand, Resources
from eva.traces.artifact import artifact_text
from eva.traces.drawing import Drawing, Durations
from eva.traces.load import load_trace
from eva.traces.sampled import LARGE_PHYSICAL, sampled_trace
from eva.traces.tables_in_out import csv_text, parquet_bytes
from eva.traces.trace import SpecPool, TaskPhases, Trace, TraceJob
from eva.traces.workloads import KINDS
from eva.traces.write import write_trace
from tests.unit.traces.making import (
    CATALOG,
    GB,
    OWN_HEADER,
    artifact_job,
    artifact_task,
    load,
    own,
    pods,
)


def test_the_artifact_format_is_read_in_full(tmp_path: Path) -> None:
    trace = load(tmp_path, json.dumps({"7": artifact_job()}), "some.json")
    (job,) = trace.jobs
    assert (trace.name, job.id, job.spec.name) == ("some", "7", "gcn[0]")
    assert (job.arrival_ms, job.duration_ms, job.init_ms) == (10_000, 100_000, 28_000)
    assert (job.total_iterations, job.throughput_per_s, job.reports_throughput) == (50, 0.5, True)
    assert job.phases == (TaskPhases(1_000, 10_000, 28_000, 1_000, 1_500, "2", 8 * GB),)
    (task,) = job.spec.tasks
    assert task.demand == Demand(Resources(1, 4_000, 16 * GB))
    assert task.throughput.on("p3") == 0.5
    assert (task.delays.checkpoint_ms, task.delays.launch_ms) == (2_500, 39_000)


def test_a_demand_may_be_given_per_family(tmp_path: Path) -> None:
    tasks = artifact_task(demand={"p3": [0, 12, 8], "c7i": [0, 6, 8]})
    (job,) = load(tmp_path, json.dumps({"0": artifact_job(tasks=tasks)})).jobs
    demand = job.spec.tasks[0].demand
    assert demand.on("p3") == Resources(0, 12_000, 8 * GB)
    assert demand.on("c7i") == Resources(0, 6_000, 8 * GB)
    assert demand.on("r7i") is None


def test_a_family_that_the_catalog_lacks_is_pointed_out(tmp_path: Path) -> None:
    tasks = artifact_task(demand={"p3": [0, 12, 8], "c7l": [0, 6, 8]})
    (notice,) = load(tmp_path, json.dumps({"0": artifact_job(tasks=tasks)})).notices
    assert notice == (
        "catalog two has no family 'c7l', so demands on it count for nothing; did you mean 'c7i'?"
    )


def test_a_job_ends_by_its_iterations_and_it_is_said_where_its_duration_differs(
    tmp_path: Path,
) -> None:
    jobs = {
        "exact": artifact_job(total_iters=50),
        "cut": artifact_job(total_iters=49),  # whole iterations: the last is left out
        "longer": artifact_job(total_iters=60),
        "longest": artifact_job(total_iters=5_000),
        "none": artifact_job(total_iters=0),
    }
    trace = load(tmp_path, json.dumps(jobs))
    assert [job.total_iterations for job in trace.jobs] == [50, 49, 60, 5_000, 0]
    (notice,) = trace.notices
    assert notice == (
        "in 3 of 5 jobs the iterations do not take as long as the duration says (job 'longest': "
        "10,000 s at full throughput, stated 100 s); a job ends by its iterations"
    )


def test_a_job_that_hides_its_throughput_still_has_one(tmp_path: Path) -> None:
    content = json.dumps({"0": artifact_job(support_throughput_aware=False)})
    (job,) = load(tmp_path, content).jobs
    assert job.spec.tasks[0].throughput.on("p3") is None
    assert (job.throughput_per_s, job.reports_throughput) == (0.5, False)


def test_jobs_come_in_order_of_arrival_and_keep_their_ids(tmp_path: Path) -> None:
    jobs = {key: artifact_job(arrival_time=at) for key, at in (("a", 30), ("b", 5), ("c", 30))}
    assert [job.id for job in load(tmp_path, json.dumps(jobs)).jobs] == ["b", "a", "c"]


def test_equal_tasks_share_one_spec(tmp_path: Path) -> None:
    jobs = {str(n): artifact_job(arrival_time=n) for n in range(3)}
    jobs["3"] = artifact_job(arrival_time=3, name="gcn[1]")
    trace = load(tmp_path, json.dumps(jobs))
    specs = [job.spec.tasks[0] for job in trace.jobs]
    assert specs[0] is specs[1] is specs[2]
    assert specs[3] is not specs[0]
    assert trace.jobs[0].spec is trace.jobs[1].spec


def test_what_our_own_csv_leaves_out_is_the_workloads(tmp_path: Path) -> None:
    trace = load(tmp_path, own("train,0,60000,gcn[2],0,6000,8192"), "hand.csv")
    (job,) = trace.jobs
    assert job.phases == (KINDS["gcn"].phases,)
    assert job.throughput_per_s == KINDS["gcn"].throughput_per_s
    assert job.total_iterations == pytest.approx(60 * KINDS["gcn"].throughput_per_s)


def test_a_workload_of_ones_own_starts_from_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(own("a,0,60000,render[1],0,6000,8192"))
    (job,) = load_trace(file, CATALOG, workloads=("render",)).jobs
    assert job.phases == (TaskPhases(image="render"),)
    assert (job.throughput_per_s, job.total_iterations) == (1.0, 60.0)


def test_tasks_of_a_job_are_consecutive_rows(tmp_path: Path) -> None:
    rows = ("a,0,60000,gcn[0],0,6000,8192", "a,0,60000,seq[0],0,4000,8192", "b,5,1,gcn[0],0,1,1")
    first, second = load(tmp_path, own(*rows)).jobs
    assert [task.workload for task in first.spec.tasks] == ["gcn[0]", "seq[0]"]
    assert len(second.spec.tasks) == 1


def test_alibaba_rules(tmp_path: Path) -> None:
    trace = load(
        tmp_path,
        pods(
            "p0,11908,47104,1,470,,LS,Running,0,100,0",
            "p1,4000,8192,0,0,,BE,Pending,7,17,",
            "p2,3152,5600,1,1000,,BE,Failed,10,20,10",
            "p3,88000,327680,8,1000,,BE,Running,10,20,10",
            "p4,11001,46081,1,1000,,BE,Succeeded,10,10,10",
        ),
    )
    kept = [job.spec.tasks[0].demand.default for job in trace.jobs]
    assert kept == [
        Resources(1, 12_000, 46 * GB),
        Resources(0, 4_000, 8 * GB),
        Resources(1, 12_000, 46 * GB),
    ]
    assert [job.duration_ms for job in trace.jobs] == [100_000, 10_000, 0]
    names = [job.spec.name for job in trace.jobs]
    assert names[0] == names[2] != names[1]
    assert trace.notices[0] == "left out 1 pods that failed"
    assert "dropped 1 of 4 pods" in trace.notices[1]
    assert "1 of 8 GPU, 88 CPU, 320 GB" in trace.notices[1]


def test_a_share_of_a_gpu_is_a_whole_one(tmp_path: Path) -> None:
    rows = ("a,1000,1024,0.3,0,,LS,Running,0,9,0", "b,1000,1024,0,250,,LS,Running,0,9,0")
    trace = load(tmp_path, pods(*rows))
    assert [job.spec.tasks[0].demand.on("p3") for job in trace.jobs] == [
        Resources(1, 1_000, GB)
    ] * 2


def test_a_pod_list_without_times_needs_drawn_durations(tmp_path: Path) -> None:
    file = tmp_path / "multigpu.csv"
    file.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,1024,1,1000\n")
    with pytest.raises(InputError, match="draw them"):
        load_trace(file, CATALOG)
    (job,) = load_trace(file, CATALOG, drawing=Drawing(3, Durations.GAVEL)).jobs
    assert job.duration_ms >= 10**1.5 * 60_000 - 1


def test_the_format_is_told_by_content(tmp_path: Path) -> None:
    made = sampled_trace("any", LARGE_PHYSICAL.of(20), seed=3)
    contents = {
        "csv": csv_text(made).encode(),
        "json": b"\xef\xbb\xbf \n" + artifact_text(made).encode(),
        "parquet": parquet_bytes(made),
        "csv.gz": gzip.compress(csv_text(made).encode()),
        "json.gz": gzip.compress(artifact_text(made).encode()),
    }
    for content in contents.values():
        assert load(tmp_path, content, "unnamed").jobs == made.jobs


@pytest.mark.parametrize("ending", ["csv", "json", "parquet", "csv.gz", "json.gz"])
def test_written_traces_read_back_the_same(tmp_path: Path, ending: str) -> None:
    made = sampled_trace("any", LARGE_PHYSICAL.of(30), seed=1)
    out = tmp_path / f"out.{ending}"
    write_trace(made, out)
    assert load_trace(out, CATALOG).jobs == made.jobs
    assert [file.name for file in tmp_path.iterdir()] == [out.name]


def test_an_unknown_ending_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no format of traces"):
        write_trace(sampled_trace("any", LARGE_PHYSICAL.of(2), 0), tmp_path / "out.xlsx")
    assert not list(tmp_path.iterdir())


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text("old")
    (job,) = sampled_trace("any", LARGE_PHYSICAL.of(1), 0).jobs
    spec = replace(
        job.spec, tasks=(job.spec.tasks[0], replace(job.spec.tasks[0], workload=Workload("x")))
    )
    mixed = replace(job, spec=spec, phases=job.phases[:1] * 2)
    with pytest.raises(InputError, match="write CSV"):
        write_trace(Trace("mixed", (mixed,)), out)
    assert out.read_text() == "old"
    with pytest.raises(InputError, match="cannot be written"):
        write_trace(Trace("one", (job,)), tmp_path / "no" / "such" / "out.csv")


amounts = st.builds(Resources, st.integers(0, 8), st.integers(0, 64_000), st.integers(1, 488 * GB))
demands = st.builds(
    Demand,
    amounts,
    st.dictionaries(st.sampled_from(["c7i", "r7i"]), amounts).map(lambda it: tuple(it.items())),
)
times = st.integers(0, 10**10)
phases = st.builds(
    TaskPhases,
    times,
    times,
    times,
    times,
    times,
    st.sampled_from(["0", "17", "007", "a, b", '"q"']),
    st.integers(0, 64 * GB),
)


@st.composite
def jobs(draw: st.DrawFn) -> TraceJob:
    count = draw(st.integers(1, 3))
    shaped = draw(st.lists(st.tuples(demands, phases), min_size=count, max_size=count))
    speed = draw(st.floats(1e-6, 1e6))
    reports = draw(st.booleans())
    pool = SpecPool()
    tasks = tuple(
        pool.task(Workload(f"gcn[{n}]"), demand, speed if reports else None, phase.delays)
        for n, (demand, phase) in enumerate(shaped)
    )
    return TraceJob(
        JobId('one, "quoted"'),
        draw(times),
        draw(times),
        pool.job(tasks[0].workload, tasks),
        draw(st.floats(0, 1e15)),
        speed,
        tuple(phase for _, phase in shaped),
        reports,
    )


@given(jobs())
def test_any_job_survives_our_own_table(
    tmp_path_factory: pytest.TempPathFactory, job: TraceJob
) -> None:
    made = Trace("t", (job,))
    folder = tmp_path_factory.getbasetemp()
    assert load(folder, csv_text(made), "survivor.csv").jobs == made.jobs


OWN_ROW = "a,0,60000,gcn[1],0,1000,1024"


@pytest.mark.parametrize(
    "content",
    [
        own(OWN_ROW).replace("\n", "\r\n").encode("utf-8-sig"),
        ",".join(f'"{name}"' for name in OWN_HEADER.split(",")) + f"\n{OWN_ROW}\n",
        "\n\n" + own(OWN_ROW, ""),
        "# from the cluster's log\n" + own(OWN_ROW),
    ],
    ids=["Excel's", "R's, with quotes", "with blank lines", "with a comment"],
)
def test_csv_as_other_programs_write_it(tmp_path: Path, content: str | bytes) -> None:
    assert load(tmp_path, content).jobs == load(tmp_path, own(OWN_ROW)).jobs
