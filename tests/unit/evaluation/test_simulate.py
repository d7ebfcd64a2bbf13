"""`eva simulate`: its JSON for programs, its text for people, its files, and what it refuses."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from eva.control.controller import Controller
from eva.control.journal import Codec, fold
from eva.control.settings import ControllerSettings
from eva.evaluation.report import SPENT
from eva.model.catalog import Catalog
from eva.traces.trace import Trace
from tests.unit.cli.conftest import Eva

REQUIRED = {
    "policy": str,
    "total_cost_usd": float,
    "no_packing_cost_usd": float,
    "lower_bound_usd": float,
    "instances_launched": int,
    "tasks_per_instance": float,
    "migrations_per_job": float,
    "jct_hours": dict,
    "idle_hours": dict,
    "normalized_throughput": float,
    "full_reconfigurations": int,
    "rounds": int,
    "jobs_finished": int,
}
HEADER = "job_id,arrival_s,duration_s"


def test_one_policy_is_one_object_with_every_promised_key(eva: Eva, trace_file: Path) -> None:
    found = eva("simulate", str(trace_file), "--policy", "eva", "--json").json
    for key, kind in REQUIRED.items():
        assert isinstance(found[key], kind), key
    assert {"mean", "p50", "p95"} <= found["jct_hours"].keys()
    assert "mean" in found["idle_hours"]
    assert found["policy"] == "eva"
    assert found["jobs_finished"] == 30
    assert found["lower_bound_usd"] < found["total_cost_usd"] < found["no_packing_cost_usd"]
    assert 0 <= found["full_reconfigurations"] <= found["rounds"]


def test_compare_is_a_list_in_the_order_asked_for(eva: Eva, trace_file: Path) -> None:
    names = ["stratus", "no-packing", "eva"]
    found = eva("simulate", str(trace_file), "--compare", ",".join(names), "--json").json
    assert [one["policy"] for one in found] == names
    alone = eva("simulate", str(trace_file), "--policy", "stratus", "--json").json
    assert {**found[0], "cpu_s": 0} == {**alone, "cpu_s": 0}


def test_compare_of_one_is_still_a_list(eva: Eva, trace_file: Path) -> None:
    found = eva("simulate", str(trace_file), "--compare", "no-packing", "--json").json
    assert isinstance(found, list)


@pytest.mark.parametrize("policy", ["no-packing", "eva"])
def test_the_parts_of_the_bill_add_up(eva: Eva, trace_file: Path, policy: str) -> None:
    found = eva("simulate", str(trace_file), "--policy", policy, "--json").json
    assert list(found["spent_usd"]) == list(SPENT)
    assert sum(found["spent_usd"].values()) == pytest.approx(found["total_cost_usd"], rel=1e-9)
    assert min(found["spent_usd"].values()) >= 0
    assert found["spent_usd"]["setup"] > 0
    assert found["spent_usd"]["draining"] > 0
    assert (found["spent_usd"]["interference"] > 0) == (policy == "eva")


def test_no_packing_in_closed_form_is_no_packing_simulated(
    eva: Eva, trace_file: Path, tmp_path: Path
) -> None:
    several = tmp_path / "several.csv"
    assert eva("trace", "convert", str(trace_file), str(several), "--multi-task", "0.3").code == 0
    for options in ((), ("--delays", "x3"), ("--durations", "gavel", "--seed", "5")):
        arguments = ("simulate", str(several), "--policy", "no-packing", *options, "--json")
        found = eva(*arguments).json
        assert found["total_cost_usd"] == pytest.approx(found["no_packing_cost_usd"], abs=1e-4)
        assert found["normalized_throughput"] == 1.0


def test_text_has_everything_of_the_report_at_any_width(eva: Eva, trace_file: Path) -> None:
    for columns in (80, 140):
        shown = eva("simulate", str(trace_file), "--compare", "no-packing,eva", columns=columns).out
        for label in (
            "of No-Packing",
            "of lower bound",
            "tasks per instance",
            "GPU allocation",
            "migrations per job",
            "migrations per task",
            "JCT P95",
            "idle mean",
            "full ones adopted",
            *SPENT,
            "Uptime",
        ):
            assert label in shown, label
        assert max(len(line) for line in shown.splitlines()) <= columns


def test_all_bounds_are_in_order(eva: Eva, trace_file: Path) -> None:
    found = eva("simulate", str(trace_file), "--bounds", "all", "--json").json
    plain, slowed, floor = (
        found[key]
        for key in ("lower_bound_usd", "lower_bound_with_interference_usd", "practical_floor_usd")
    )
    assert plain <= slowed <= found["total_cost_usd"]
    assert slowed < floor < found["no_packing_cost_usd"]
    found = eva("simulate", str(trace_file), "--bounds", "none", "--json").json
    assert found["lower_bound_usd"] is None


def test_events_fold_back_into_the_end_of_the_simulation(
    eva: Eva, trace_file: Path, trace: Trace, paper: Catalog, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    found = eva("simulate", str(trace_file), "--events", str(path), "--json").json
    codec = Codec(paper)
    journal = [codec.decode(json.loads(line)) for line in path.read_text().splitlines()]
    controller = fold(journal, Controller(paper, ControllerSettings()))
    assert len(controller.state.records) == len(trace)
    assert controller.state.launches == found["instances_launched"]


def test_every_policy_gets_files_of_its_own(eva: Eva, trace_file: Path, tmp_path: Path) -> None:
    events, plot = tmp_path / "e.jsonl", tmp_path / "p.svg"
    eva(
        *("simulate", str(trace_file), "--compare", "no-packing,eva"),
        *("--events", str(events), "--plot", str(plot)),
    )
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"e.no-packing.jsonl", "e.eva.jsonl", "p.no-packing.svg", "p.eva.svg"}


@pytest.mark.parametrize(("ending", "start"), [(".svg", b"<?xml"), (".png", b"\x89PNG")])
def test_a_timeline_is_a_picture_and_always_the_same(
    eva: Eva, trace_file: Path, tmp_path: Path, ending: str, start: bytes
) -> None:
    paths = [tmp_path / f"{name}{ending}" for name in ("a", "b")]
    for path in paths:
        assert eva("simulate", str(trace_file), "--first", "5", "--plot", str(path)).code == 0
    first, second = (path.read_bytes() for path in paths)
    assert first.startswith(start)
    assert first == second


def test_the_same_seed_gives_the_same_report_and_another_does_not(
    eva: Eva, trace_file: Path
) -> None:
    def cost(*options: str) -> float:
        found = eva("simulate", str(trace_file), *options, "--delays", "sampled", "--json").json
        return float(found["total_cost_usd"])

    assert cost("--seed", "1") == cost("--seed", "1") != cost("--seed", "2")
    assert cost("--noise", "0.2") != cost()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--policy", "evva"), "did you mean 'eva'"),
        (("--compare", "eva,nobody,nothing"), "'nothing' is not a policy"),
        (("--compare", ","), "names no policy"),
        (("--delays", "x-1"), "fixed, sampled or xN"),
        (("--delays", "slow"), "fixed, sampled or xN"),
        (("--catalog", "nowhere"), "nowhere"),
        (("--plot", "cluster.jpeg"), "no format of pictures"),
        (("--plot", "/nowhere/cluster.svg"), "/nowhere is no folder"),
        (("--interference", "/nowhere.csv"), "/nowhere.csv"),
        (("--events", "/nowhere/e.jsonl"), "cannot be written"),
    ],
)
def test_wrong_usage_is_one_clear_error(
    eva: Eva, trace_file: Path, arguments: tuple[str, ...], told: str
) -> None:
    found = eva("simulate", str(trace_file), *arguments)
    assert found.code == 2
    assert told in found.err
    assert found.out == ""


def test_a_bad_trace_lists_every_problem_and_writes_nothing(
    eva: Eva, trace_file: Path, tmp_path: Path
) -> None:
    lines = trace_file.read_text().splitlines()
    columns = lines[0].split(",")
    rows = [line.split(",") for line in lines[1:5]]
    place = {name: columns.index(name) for name in columns}
    arrival = next(name for name in columns if name.startswith("arrival"))
    rows[0][place[arrival]] = "-5"
    rows[1][place[arrival]] = "nan"
    rows[3][0] = rows[2][0]
    bad, out = tmp_path / "bad.csv", tmp_path / "out"
    out.mkdir()
    bad.write_text("\n".join([lines[0], *(",".join(row) for row in rows)]) + "\n")
    found = eva(
        *("simulate", str(bad), "--events", str(out / "e"), "--plot", str(out / "p.svg")), "--json"
    )
    assert found.code == 2
    problems = [line for line in found.err.splitlines() if line.startswith("error: ")]
    assert len(problems) >= 3
    for line in (2, 3, 5):
        assert re.search(rf"bad\.csv:{line}\b", found.err)
    assert list(out.iterdir()) == []
    assert found.out == ""


def test_what_reading_a_trace_left_out_is_told_beside_json_too(eva: Eva, tmp_path: Path) -> None:
    pods = tmp_path / "pods.csv"
    header = "name,cpu_milli,memory_mib,num_gpu,pod_phase,creation_time,deletion_time"
    pods.write_text(f"{header}\np,1000,1024,1,Running,0,90\nq,1000,1024,9,Running,0,90\n")
    found = eva("simulate", str(pods), "--json")
    assert found.json["jobs"] == 1
    assert "note: dropped 1 of 2 pods" in found.err


@pytest.mark.parametrize("content", ["", "{}", f"{HEADER}\n", "a,b\n1,2\n"])
def test_no_trace_at_all(eva: Eva, tmp_path: Path, content: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(content)
    assert eva("simulate", str(path)).code == 2


def test_numbers_are_finite(eva: Eva, trace_file: Path) -> None:
    def walk(value: object) -> None:
        if isinstance(value, dict):
            for inner in value.values():
                walk(inner)
        elif isinstance(value, float):
            assert math.isfinite(value)

    walk(eva("simulate", str(trace_file), "--first", "1", "--json").json)


# Spot


def test_on_spot_it_costs_less_and_risk_takes_some_of_that_back(eva: Eva, trace_file: Path) -> None:
    def told(*options: str) -> Any:
        asked = ("simulate", str(trace_file), "--catalog", "aws", *options, "--json")
        return eva(*asked).json

    steady, calm, rough = told(), told("--spot", "0"), told("--spot", "2")
    assert (steady["spot_hours"], steady["interruptions"]) == (0, 0)
    assert calm["interruptions"] == 0 < calm["spot_hours"]
    assert rough["interruptions"] > 0
    assert calm["lower_bound_usd"] < calm["total_cost_usd"] < rough["total_cost_usd"]
    assert rough["total_cost_usd"] < steady["total_cost_usd"] < steady["no_packing_cost_usd"]
    assert calm["no_packing_cost_usd"] == steady["no_packing_cost_usd"]
    assert calm["lower_bound_usd"] < steady["lower_bound_usd"]
    assert rough["jobs_finished"] == steady["jobs_finished"] == 30
    assert {**told("--spot", "2"), "cpu_s": 0} == {**rough, "cpu_s": 0}
    assert told("--spot", "2", "--seed", "1")["interruptions"] != rough["interruptions"]


def test_interruptions_are_told_where_anything_was_on_spot(eva: Eva, trace_file: Path) -> None:
    asked = ("simulate", str(trace_file), "--catalog", "aws")
    assert "interruptions" in eva(*asked, "--spot", "2").out
    assert "interruptions" not in eva(*asked).out


def test_spot_needs_prices_for_it(eva: Eva, trace_file: Path) -> None:
    outcome = eva("simulate", str(trace_file), "--spot", "1")
    assert outcome.code == 2
    assert "catalog paper has no price on spot" in outcome.err
