"""`eva trace`: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eva.cli import main as entry
from tests.unit.traces.making import pods

POD_ROWS = (
    "p0,11908,47104,1,470,,LS,Running,0,3600,0",
    "p1,4000,8192,0,0,,BE,Running,7,7207,",
    "p2,3152,5600,1,1000,,BE,Failed,10,20,10",
)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr("sys.argv", ["eva", "trace", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        entry.main()
    return int(stopped.value.code or 0)


def test_stats_prints_both_tables_beside_the_published_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pods.csv"
    file.write_text(pods(*POD_ROWS))
    assert run(monkeypatch, "stats", file) == 0
    out, err = capsys.readouterr()
    assert "pods: 2 jobs" in out
    mix = next(line for line in out.splitlines() if line.startswith("pods  "))
    assert mix.split() == ["pods", "50.00%", "50.00%", "0.00%", "0.00%", "0.00%"]
    assert "86.17%" in out
    assert "16.7" in out
    assert "left out 1 pods that failed" in err


def test_stats_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pods.csv"
    file.write_text(pods(*POD_ROWS))
    assert run(monkeypatch, "stats", file, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["jobs"], found["tasks"], found["gpu_mix"]) == (2, 2, {"0": 0.5, "1": 0.5})
    assert found["duration_hours"]["mean"] == 1.5
    assert found["published"]["gpu_mix"]["1"] == 0.8617
    assert found["notices"] == ["left out 1 pods that failed"]


def test_generate_and_convert_keep_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, turned = tmp_path / "made.csv", tmp_path / "turned.json"
    options = ("--jobs", "50", "--seed", "3", "--multi-task", "0.2", "--multi-gpu", "0.1")
    assert run(monkeypatch, "generate", "synthetic", made, *options) == 0
    assert run(monkeypatch, "convert", made, turned) == 0
    capsys.readouterr()
    sizes = []
    for file in (made, turned):
        assert run(monkeypatch, "stats", file, "--json") == 0
        sizes.append(json.loads(capsys.readouterr().out) | {"name": ""})
    assert sizes[0] == sizes[1]
    assert (sizes[0]["jobs"], sizes[0]["tasks"], sizes[0]["multi_task_jobs"]) == (50, 70, 10)


@pytest.mark.parametrize(
    ("kind", "jobs"), [("physical-32", 32), ("physical-120", 120), ("multi-task", 100)]
)
def test_every_kind_can_be_made(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    jobs: int,
) -> None:
    out = tmp_path / "it.csv"
    assert run(monkeypatch, "generate", kind, out) == 0
    assert f"{jobs} jobs" in capsys.readouterr().err


def test_a_bad_trace_ends_in_exit_code_2_and_nothing_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "pods.csv", tmp_path / "out.json"
    file.write_text(pods("p0,-1,x,1,0,,LS,Running,0,1,0"))
    assert run(monkeypatch, "convert", file, out) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"error: {file}:2: cpu_milli: -1 is negative" in printed.err
    assert f"error: {file}:2: memory_mib: 'x' is not a number" in printed.err
    assert not out.exists()


def test_a_share_that_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    assert run(monkeypatch, "generate", "physical-32", out, "--multi-gpu", "1") == 2
    assert "could become multi-GPU" in capsys.readouterr().err
    assert not out.exists()
