from __future__ import annotations

from pathlib import Path

import pytest

from eva.scheduling.policies import POLICY_NAMES, policy
from tests.support.requirements import REPOSITORY
from tests.unit.cli.conftest import Eva

EXAMPLE = REPOSITORY / "examples" / "paper-example"
TASKS, CATALOG = str(EXAMPLE / "tasks.csv"), str(EXAMPLE / "catalog.csv")
WORKED = ("solve", "--tasks", TASKS, "--catalog", CATALOG)

HEADER = "id,workload,gpus,cpus,memory_gb"
MATRIX = (
    "w,train-large,train-small,simulate,analyse\n"
    "train-large,1,{large},1,1\ntrain-small,{small},1,1,1\nsimulate,1,1,1,1\nanalyse,1,1,1,1\n"
)


def test_the_worked_example(eva: Eva) -> None:
    solved = eva(*WORKED, "--json").json
    assert solved["policy"] == "eva"
    assert solved["cost_usd_per_hour"] == 12.8
    assert solved["no_packing_usd_per_hour"] == 16.2
    assert solved["lower_bound_usd_per_hour"] <= 12.8
    assert [(i["type"], i["tasks"]) for i in solved["instances"]] == [
        ("it1", ["t1", "t2", "t4"]),
        ("it3", ["t3"]),
    ]
    first = solved["instances"][0]
    assert (first["usd_per_hour"], first["value_usd_per_hour"]) == (12, 15.4)
    assert solved["unplaceable"] == []
    prices = {
        share["workload"]: share["reservation_price_usd_per_hour"]
        for instance in solved["instances"]
        for share in instance["shares"]
    }
    assert prices == {"train-large": 12, "train-small": 3, "simulate": 0.8, "analyse": 0.4}


def test_the_worked_example_in_words(eva: Eva) -> None:
    outcome = eva(*WORKED)
    assert outcome.err == ""
    assert "$12.80 per hour for 4 tasks on 2 instances" in outcome.out
    assert "No-Packing   $16.20" in outcome.out
    assert "it1 at $12.00: apart its tasks would cost $15.40" in outcome.out
    assert "t2 (train-small): $3.00 alone on it2" in outcome.out
    assert "it3 at $0.80: t3, alone on the cheapest type that holds it" in outcome.out


@pytest.mark.parametrize(("large", "small", "worth_together"), [(0.8, 0.9, 12.3), (0.7, 0.8, None)])
def test_interference_decides(
    eva: Eva, tmp_path: Path, large: float, small: float, worth_together: float | None
) -> None:
    """The paper's two cases: 12 x 0.8 + 3 x 0.9 = 12.3 pays for it1, 12 x 0.7 + 3 x 0.8 not."""
    matrix = tmp_path / "matrix.csv"
    matrix.write_text(MATRIX.format(large=large, small=small))
    tasks = f"{HEADER}\nt1,train-large,2,8,24\nt2,train-small,1,4,10\n"
    arguments = ("solve", "--tasks", "-", "--catalog", CATALOG, "--interference", str(matrix))
    solved = eva(*arguments, "--policy", "eva-full-only", "--json", stdin=tasks).json
    placed = [instance["tasks"] for instance in solved["instances"]]
    if worth_together is not None:
        assert placed == [["t1", "t2"]]
        assert solved["instances"][0]["value_usd_per_hour"] == worth_together
        text = eva(*arguments, "--policy", "eva-full-only", stdin=tasks).out
        assert "apart its tasks would cost $15.00; together, at the speeds below," in text
        assert "here $9.60, at 80% speed" in text
    else:
        assert placed == [["t1"], ["t2"]]


def test_unmeasured_pairs_may_be_expected_to_be_slow(eva: Eva) -> None:
    careful = eva(*WORKED, "--default-throughput", "0.95", "--json").json
    assert careful["cost_usd_per_hour"] == 13.2  # a third task costs the other two more than $0.40
    assert careful["instances"][0]["shares"][0]["throughput"] == 0.95
    outcome = eva(*WORKED, "--default-throughput", "0")
    assert (outcome.code, outcome.out) == (2, "")
    assert "0 is not a throughput; give one in (0, 1]" in outcome.err


def test_tasks_that_fit_nothing_are_named_and_the_rest_is_planned(eva: Eva) -> None:
    tasks = f"{HEADER}\nbig,w,9,1,1\nsmall,w,0,1,1\n"
    solved = eva("solve", "--tasks", "-", "--json", stdin=tasks)
    assert solved.code == 0
    (missing,) = solved.json["unplaceable"]
    assert missing["id"] == "big"
    assert "needs 9 GPU" in missing["reason"]
    assert [instance["tasks"] for instance in solved.json["instances"]] == [["small"]]
    assert "Not placed: 1 task\n  big: needs 9 GPU" in eva("solve", "-t", "-", stdin=tasks).out


def test_nothing_fits_at_all(eva: Eva) -> None:
    tasks = f"{HEADER}\nbig,w,9,1,1\n"
    solved = eva("solve", "--tasks", "-", "--json", stdin=tasks).json
    assert (solved["cost_usd_per_hour"], solved["gap"]) == (0, None)
    assert eva("solve", "--tasks", "-", stdin=tasks).code == 0


def test_equal_instances_share_a_line(eva: Eva) -> None:
    rows = "".join(f"t{number},vit,2,8,60\n" for number in range(40))
    outcome = eva("solve", "--tasks", "-", stdin=f"{HEADER}\n{rows}")
    assert "10 x p3.16xlarge" in outcome.out
    assert "and 35 more" in outcome.out


def test_all_problems_of_a_file_and_nothing_on_standard_output(eva: Eva) -> None:
    outcome = eva("solve", "--tasks", "-", "--json", stdin=f"{HEADER}\na,w,NaN,1,1\na,w,1,-1,1\n")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.splitlines() == [
        "error: <stdin>:2: gpus: 'NaN' is not a finite number",
        "error: <stdin>:3: cpus: -1 is negative; CPUs start at 0",
        "error: <stdin>:3: id: 'a' is already on line 2",
        "3 problems; nothing was done",
    ]


def test_a_family_that_the_catalog_lacks_is_noted(eva: Eva) -> None:
    tasks = f"{HEADER},cpus.c7j\na,w,0,1,1,2\n"
    outcome = eva("solve", "--tasks", "-", "--json", stdin=tasks)
    assert outcome.code == 0
    assert "no family 'c7j'" in outcome.err
    assert "did you mean 'c7i'?" in outcome.err
    assert outcome.json["instances"]


def test_an_unknown_policy_suggests(eva: Eva) -> None:
    outcome = eva(*WORKED, "--policy", "eva-fulonly")
    assert outcome.code == 2
    assert "did you mean 'eva-full-only'?" in outcome.err


def test_tasks_are_required(eva: Eva) -> None:
    outcome = eva("solve")
    assert outcome.code == 2
    assert "--tasks" in outcome.err


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_every_policy_places_every_task_or_says_what_it_must_know(
    eva: Eva, tmp_path: Path, name: str
) -> None:
    outcome = eva(*WORKED, "--policy", name, "--json")
    if policy(name).knowledge:
        assert outcome.code == 2
        assert f"policy {name} has to know how" in outcome.err
        matrix, tasks = tmp_path / "matrix.csv", tmp_path / "tasks.csv"
        matrix.write_text(MATRIX.format(large=0.9, small=0.9))
        lines = Path(TASKS).read_text().splitlines()[1:]
        timed = [lines[0] + ",duration_h", *(f"{line},1.5" for line in lines[1:])]
        tasks.write_text("\n".join(timed))
        arguments = ("--catalog", CATALOG, "--interference", str(matrix), "--policy", name)
        outcome = eva("solve", "--tasks", str(tasks), *arguments, "--json")
    solved = outcome.json
    assert outcome.code == 0
    placed = sorted(task for instance in solved["instances"] for task in instance["tasks"])
    assert placed == ["t1", "t2", "t3", "t4"]
    cost = sum(instance["usd_per_hour"] for instance in solved["instances"])
    assert solved["cost_usd_per_hour"] == pytest.approx(cost)
    assert cost >= solved["lower_bound_usd_per_hour"]


def test_help_names_policies_that_exist(eva: Eva) -> None:
    text = " ".join(eva("solve", "--help").out.split())
    named = text.partition("Who plans: ")[2].partition(", ...")[0].split(", ")
    assert set(named) <= set(POLICY_NAMES)


def test_a_narrow_terminal_is_kept_to(eva: Eva) -> None:
    for line in eva(*WORKED, columns=60).out.splitlines():
        assert len(line) <= 60


SPOT_CATALOG = (
    "instance_type,family,gpus,cpus,memory_gb,usd_per_hour,spot_usd_per_hour\none,g,1,4,16,1,0.4\n"
)
SPOT_TASKS = f"{HEADER},use_spot\na,w,1,4,16,true\nb,w,1,4,16,\n"


def test_spot_is_for_tasks_that_allow_it_and_its_risk_is_told(eva: Eva, tmp_path: Path) -> None:
    catalog, tasks = tmp_path / "prices.csv", tmp_path / "tasks.csv"
    catalog.write_text(SPOT_CATALOG)
    tasks.write_text(SPOT_TASKS)
    asked = ("solve", "--tasks", str(tasks), "--catalog", str(catalog))
    solved = eva(*asked, "--json").json
    told = {tuple(each["tasks"]): each for each in solved["instances"]}
    on_spot, steady = told[("a",)], told[("b",)]
    assert (on_spot["type"], on_spot["spot"], on_spot["usd_per_hour"]) == ("one:spot", True, 0.4)
    assert (steady["type"], steady["spot"], steady["usd_per_hour"]) == ("one", False, 1)
    # One in twenty hours, of ten minutes of a dollar an hour.
    risk = on_spot["interruption_risk_usd_per_hour"]
    assert risk == pytest.approx(1 / 6 / 20, abs=1e-6)
    assert steady["interruption_risk_usd_per_hour"] == 0
    assert solved["cost_usd_per_hour"] == 1.4
    assert solved["interruption_risk_usd_per_hour"] == risk
    assert solved["cost_with_risk_usd_per_hour"] == pytest.approx(1.4 + risk)
    assert solved["gap"] == pytest.approx(0)
    text = eva(*asked).out
    assert "$1.4083 per hour for 2 tasks" in text
    assert "of which $1.4000 is paid and $0.0083 is the risk of interruption" in text
    assert "one:spot at $0.4083 (of which $0.0083 for the risk of interruption): a, alone" in text


def test_without_a_task_that_allows_it_there_is_no_word_of_spot(eva: Eva, tmp_path: Path) -> None:
    catalog, tasks = tmp_path / "prices.csv", tmp_path / "tasks.csv"
    catalog.write_text(SPOT_CATALOG)
    tasks.write_text(f"{HEADER}\na,w,1,4,16\n")
    text = eva("solve", "--tasks", str(tasks), "--catalog", str(catalog)).out
    assert "$1.00 per hour" in text
    assert "spot" not in text
