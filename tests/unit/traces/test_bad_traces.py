"""Bad traces end in one error that lists everything wrong, and where."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eva.model.errors import InputError
from eva.traces.artifact import artifact_text
from eva.traces.load import load_trace
from eva.traces.sampled import LARGE_PHYSICAL, sampled_trace
from eva.traces.tables_in_out import csv_text, parquet_bytes
from tests.unit.traces.making import (
    CATALOG,
    POD_HEADER,
    artifact_job,
    artifact_task,
    complaints,
    load,
    own,
    pods,
)


def refused(path: Path, content: str | bytes, name: str = "t") -> list[str]:
    with pytest.raises(InputError) as caught:
        load(path, content, name)
    assert caught.value.exit_code == 2
    return complaints(caught.value, path)


def test_all_problems_of_a_json_trace_are_listed_at_once(tmp_path: Path) -> None:
    content = {
        "0": artifact_job(arrival_time=-5, duration=float("nan")),
        "1": artifact_job(name="unheard[0]"),
        "2": artifact_job(tasks=artifact_task(demand={"any": [9, 4, 16]})),
        "3": artifact_job(tasks=artifact_task(fetch_delay="soon", image_id=None)),
        "4": artifact_job(total_iters=10**400, full_throughput=0),
        "5": artifact_job(tasks={}),
        "6": {"name": "gcn[0]"},
        "7": artifact_job(support_throughput_aware="maybe", init_delay=True),
        "8": artifact_job(tasks=artifact_task(demand={"any": [1, 2]})),
        "9": [],
        "10": artifact_job(tasks=artifact_task(demand={"any": [0.5, 4, 1e300]})),
        "11": artifact_job(tasks=artifact_task(demand={"any": [0, 4, 8], "c7i": [0, 0, 0]})),
    }
    found = refused(tmp_path, json.dumps(content))
    expected = [
        ("job '0' arrival_time", "-5 is negative"),
        ("job '0' duration", "'nan' is not a finite number"),
        ("job '1'", "'unheard[0]' is unknown"),
        ("job '2'", "needs 9 GPU, 4 CPU, 16 GB; no instance type of catalog 'two'"),
        ("job '3' tasks 0 fetch_delay", "'soon' is not a number"),
        ("job '3' tasks 0 image_id", "is missing"),
        ("job '4' total_iters", "no sensible number"),
        ("job '4' full_throughput", "0 is not positive"),
        ("job '5' tasks", "needs at least one"),
        *[
            (f"job '6' {field}", "is missing")
            for field in ("init_delay", "arrival_time", "duration", "total_iters")
        ],
        ("job '6' full_throughput", "is missing"),
        ("job '6' support_throughput_aware", "neither true nor false"),
        ("job '6' tasks", "is missing"),
        ("job '7' support_throughput_aware", "'maybe' is neither"),
        ("job '7' init_delay", "'True' is not a number"),
        ("job '8' tasks 0 demand any", "[1, 2] is not [gpu, cpu, memory_gb]"),
        ("job '9'", "[] is not an object"),
        ("job '10' tasks 0 demand any gpu", "0.5 is not a whole number"),
        ("job '10' tasks 0 demand any memory_gb", "more than any sensible"),
        ("job '11'", "asks for nothing"),
    ]
    for place, message in expected:
        assert any(it.startswith(f"t: {place}: ") and message in it for it in found), (place, found)
    assert len(found) == len(expected)


def test_keys_given_twice_are_found_at_every_depth(tmp_path: Path) -> None:
    job = json.dumps(artifact_job())
    doubled = job.replace('"duration": 100', '"duration": 100, "duration": 7')
    task = job.replace('"shm_size": 8', '"shm_size": 8, "shm_size": 8')
    found = refused(tmp_path, f'{{"0": {job}, "0": {job}, "1": {doubled}, "2": {task}}}')
    assert found == [
        "t: 0: is there twice; keep one",
        "t: job '1' duration: is there twice; keep one",
        "t: job '2' tasks 0 shm_size: is there twice; keep one",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("{}", "holds no jobs"),
        ("[]", "no object of jobs"),
        ('{"0": {"name": "gc', "was it cut short"),
        ('{"0": ' + "[" * 200_000, "nested too deeply"),
        ('{"0": ' + "9" * 5_000 + "}", "absurd number"),
        ("hello, world\n1,2\n", "is no trace that Eva knows"),
        (b"\xff\xfe\x00", "is not UTF-8"),
        (own("a,0,1,gcn,0,1,1").encode("utf-16-le"), "holds a zero byte"),
        (own("a,0,1,gcn,0,1,1").replace(",", ";"), "separated by semicolons; use commas"),
        (own("a,0,1,gcn,0,1,1").replace(",", "\t"), "separated by tabs; use commas"),
        (gzip.compress(b'{"0": {}}', mtime=0)[:-6], "is not a whole gzip file"),
        (b"\x1f\x8b not gzip", "is not a whole gzip file"),
        (b"PAR1 and then nothing", "is not a whole Parquet file"),
        (own(), "holds no jobs"),
        (pods(), "holds no pod that did not fail"),
        (pods("p,1,1,1,1,,LS,Failed,1,2,1"), "holds no pod that did not fail"),
        (pods("p,99000,1,8,1,,LS,Running,1,2,1"), "no pod fits any instance type"),
        (own('a,0,1,"gcn,0,1,1'), "is not valid CSV"),
    ],
)
def test_files_that_are_no_traces(tmp_path: Path, content: str | bytes, message: str) -> None:
    (found,) = refused(tmp_path, content)
    assert message in found


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_trace(tmp_path / "none.csv", CATALOG)
    with pytest.raises(InputError, match="Is a directory"):
        load_trace(tmp_path, CATALOG)


def test_all_problems_of_our_own_csv_are_listed_with_their_lines(tmp_path: Path) -> None:
    found = refused(
        tmp_path,
        own(
            "a,-1,1.5,gcn[0],0,1000,1024,",
            "b,0,nan,gcn[0],,1000,x,",
            "c,0,1,unheard,0,1000,1024,",
            "d,0,1,gcn[0],0,1000,1024,,more",
            "e,0,1,gcn[0],9,1000,1024,",
            "f,0,1,gcn[0],0,1000,1024,c7i=1/2",
            "g,0,1,gcn[0],0,1000,1024,c7i=0/-5/1",
            "a,0,99999999999999999,gcn[0],0,1000,1024,",
            ",0,1,gcn[0],0,1000,1024,",
            "h,0,1,gcn[0],0,1000,1024,",
            "h,7,1,gcn[0],0,1000,1024,",
            more=",per_family",
        ),
    )
    expected = [
        ("2: arrival_ms", "-1 is negative"),
        ("2: duration_ms", "1.5 is not a whole number"),
        ("3: duration_ms", "'nan' is not a finite number"),
        ("3: gpus", "is missing"),
        ("3: memory_mib", "'x' is not a number"),
        ("4", "'unheard' is unknown"),
        ("5", "has 9 cells, the header has 8"),
        ("6", "needs 9 GPU"),
        ("7: per_family", "'c7i=1/2' is not FAMILY="),
        ("8: per_family c7i cpu_millis", "-5 is negative"),
        ("9: duration_ms", "more than any sensible"),
        ("9", "'a' is there twice"),
        ("10: job", "is missing"),
        ("12: arrival_ms", "'7' differs from '0'"),
    ]
    for place, message in expected:
        assert any(it.startswith(f"t:{place}: ") and message in it for it in found), (place, found)
    assert len(found) == len(expected)


def test_missing_unknown_and_doubled_columns(tmp_path: Path) -> None:
    found = refused(tmp_path, "job,arrival_ms,gpus,gpus,wrkload\n1,2,3,4,5\n")
    text = "\n".join(found)
    for column in ("duration_ms", "workload", "cpu_millis", "memory_mib"):
        assert f"t:1: column '{column}' is missing" in text
    assert "column 'gpus' is there twice" in text
    assert "unknown column 'wrkload'; did you mean 'workload'?" in text


def test_bad_pods(tmp_path: Path) -> None:
    found = refused(
        tmp_path,
        pods(
            "p,1000,1024,1,0,,LS,Running,9,5,1",
            "p,1000,1024,1,0,,LS,Running,1,5,1",
            "q,-1,many,1,0,,LS,Running,1,,1",
            "r,inf,1024,1e9,0,,LS,,1,5,1",
            "s,1000,1024,0,0,,LS,failed,1,5,1",
            "t,0,0,0,0,,LS,Running,1,5,1",
        ),
    )
    assert found == [
        "t:2: deletion_time: is before creation_time; swap them?",
        "t:3: name: 'p' is there twice; rename one",
        "t:4: deletion_time: is missing; write a number",
        "t:4: cpu_milli: -1 is negative; thousandths of a CPU start at 0",
        "t:4: memory_mib: 'many' is not a number",
        "t:5: pod_phase: is missing",
        "t:5: num_gpu: 1e9 is more than any sensible number of GPUs (1,024)",
        "t:5: cpu_milli: 'inf' is not a finite number",
        (
            "t:6: pod_phase: 'failed' is none of Pending, Running, Succeeded, Failed, Unknown; "
            "did you mean 'Failed'?"
        ),
        "t:7: asks for nothing; a pod needs a GPU, CPU or memory",
    ]


def test_a_pod_list_that_lacks_a_column(tmp_path: Path) -> None:
    header = POD_HEADER.replace("num_gpu,", "").replace("deletion_time,", "")
    found = refused(tmp_path, f"{header}\n")
    assert found == ["t:1: column 'num_gpu' is missing", "t:1: column 'deletion_time' is missing"]


_WHOLE = sampled_trace("whole", LARGE_PHYSICAL.of(4), 0)
_ENCODED = (
    csv_text(_WHOLE).encode(),
    artifact_text(_WHOLE).encode(),
    parquet_bytes(_WHOLE),
    gzip.compress(artifact_text(_WHOLE).encode()),
)


@settings(max_examples=200)
@given(
    content=st.sampled_from(_ENCODED),
    cut=st.floats(0, 1),
    at=st.floats(0, 1),
    junk=st.binary(max_size=6),
)
def test_no_damage_ends_in_anything_but_a_trace_or_a_list_of_problems(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, cut: float, at: float, junk: bytes
) -> None:
    place = int(at * len(content))
    damaged = content[:place] + junk + content[place + len(junk) :]
    damaged = damaged[: int(cut * len(damaged))] if cut < 0.5 else damaged
    folder = tmp_path_factory.mktemp("damaged")
    with suppress(InputError):  # anything else is a crash
        assert len(load(folder, damaged)) > 0
