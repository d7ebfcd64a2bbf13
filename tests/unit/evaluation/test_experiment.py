"""`eva experiment`: files as data, cells run once, resumed, published beside the paper."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from eva.evaluation import campaign
from eva.evaluation.campaign import Means, run_missing
from eva.evaluation.cell import Cell, TraceSource
from eva.evaluation.cell_run import Measures, run_cell
from eva.evaluation.experiment import Experiment, Scale, built_in, cells_of, read_experiment
from eva.evaluation.outcome import RELATIVE_COST, outcome_of
from eva.evaluation.results import Results
from eva.evaluation.tables import claim_table, main_table, markdown
from eva.model.errors import EvaError, InputError
from tests.support.requirements import REPOSITORY
from tests.unit.cli.conftest import Eva

TINY = """
title: Tiny <&> experiment
source: nowhere
about: Two policies, two values.
trace: gavel
first: 4
policies: [no-packing, eva]
labels: {eva: "Eva <ours>"}
baseline: no-packing
seeds: 2
vary: {parameter: interference, label: speed, values: [1.0, 0.8]}
columns: {relative_cost: of No-Packing, total_cost_usd: cost, jct_hours.mean: "JCT, h"}
figures:
  - {measure: relative_cost, label: cost}
published:
  - {value: 0.8, policy: eva, relative_cost: 0.5}
claims:
  - text: Eva is cheaper
    measure: relative_cost
    policy: eva
    against: [no-packing]
    between: [null, 1.0]
  - {text: Eva is free, measure: relative_cost, policy: eva, between: [null, 0.0]}
minutes: 0.1
"""


@pytest.fixture
def tiny() -> Experiment:
    return read_experiment(TINY, "tiny.yaml", "tiny")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """The cells that were really run."""
    ran: list[Cell] = []

    def counting(cell: Cell) -> Measures:
        ran.append(cell)
        return run_cell(cell)

    monkeypatch.setattr(campaign, "run_cell", counting)
    return ran


def ignore(_cell: Cell) -> None:
    pass


def test_the_papers_experiments_are_all_there() -> None:
    assert list(built_in()) == [
        "provisioning",
        "scalability",
        "multi-task-jobs",
        "physical-120",
        "physical-32",
        "alibaba",
        "gavel",
        "interference",
        "migration-delay",
        "multi-gpu",
        "multi-task-share",
        "arrival-rate",
    ]


@pytest.mark.parametrize("name", list(built_in()))
def test_every_experiment_can_be_run_and_measures_what_it_shows(name: str) -> None:
    """One cell of each, of a few jobs: its columns, figures and published measures exist."""
    experiment = built_in()[name]
    (cell, *_) = cells_of(experiment, None, Scale(seeds=1, most_jobs=3))
    measures = {*run_cell(cell), RELATIVE_COST}
    shown = {*experiment.columns, *(figure.measure for figure in experiment.figures)}
    shown |= {claim.measure for claim in experiment.claims}
    assert shown - {"uptime_hours"} <= measures
    for row in experiment.published:
        assert row["policy"] in experiment.policies
        assert row.keys() - {"policy", "value"} <= measures


def test_a_file_with_mistakes_is_refused_by_line() -> None:
    text = TINY.replace("baseline: no-packing", "baseline: owll").replace("seeds: 2", "sedes: 2")
    with pytest.raises(InputError) as caught:
        read_experiment(text, "tiny.yaml", "tiny")
    assert "tiny.yaml:10: sedes" in str(caught.value)
    with pytest.raises(InputError, match="'owll' is not a policy; did you mean 'owl'"):
        read_experiment(TINY.replace("baseline: no-packing", "baseline: owll"), "t.yaml", "t")


def test_nothing_is_run_twice_and_a_lost_result_is_run_again(
    tiny: Experiment, tmp_path: Path, counted: list[Cell]
) -> None:
    cells, results = cells_of(tiny, None, Scale()), Results(tmp_path)
    assert len(cells) == 2 * 2 * 2
    run_missing(cells[:3], results, Means(1), ignore)
    run_missing(cells, results, Means(1), ignore)
    assert sorted(cell.key for cell in counted) == sorted(cell.key for cell in cells)
    lost = next((tmp_path / "cells").iterdir())
    lost.write_text(lost.read_text()[:40])  # as if the disk had been full
    run_missing(cells, results, Means(1), ignore)
    assert len(counted) == len(cells) + 1


def test_processes_and_one_process_give_the_same(tiny: Experiment, tmp_path: Path) -> None:
    cells = cells_of(tiny, None, Scale(seeds=1))
    one, two = Results(tmp_path / "one"), Results(tmp_path / "two")
    seen: list[Cell] = []
    run_missing(cells, one, Means(1), ignore)
    run_missing(cells, two, Means(2), seen.append)
    assert len(seen) == len(cells)
    for cell in cells:
        first, second = one.get(cell), two.get(cell)
        assert first
        assert second
        assert {**first, "cpu_s": 0} == {**second, "cpu_s": 0}


def test_a_key_follows_what_matters_and_nothing_else(tmp_path: Path) -> None:
    here, there = tmp_path / "a.csv", tmp_path / "b.csv"
    for path in (here, there):
        path.write_text("the same")
    other = tmp_path / "c.csv"
    other.write_text("another")
    base = Cell("simulation", TraceSource.of("gavel", here), "eva", 0)
    assert base.key == replace(base, source=TraceSource.of("gavel", there)).key
    assert base.key != replace(base, source=TraceSource.of("gavel", other)).key
    assert len({base.key, base.of("owl", 0).key, base.of("eva", 1).key}) == 3


def test_a_failing_cell_is_named_and_the_others_are_kept(
    tiny: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(cell: Cell) -> Measures:
        if cell.policy == "eva":
            raise InputError.single("the trace", "is odd")
        return run_cell(cell)

    monkeypatch.setattr(campaign, "run_cell", failing)
    cells, results = cells_of(tiny, None, Scale()), Results(tmp_path)
    with pytest.raises(EvaError, match=r"4 of 8 cells failed(.|\n)*eva, seed 0: the trace: is odd"):
        run_missing(cells, results, Means(1), ignore)
    assert sum(results.get(cell) is not None for cell in cells) == 4


def test_means_published_figures_and_claims_stand_in_the_tables(
    tiny: Experiment, tmp_path: Path
) -> None:
    cells, results = cells_of(tiny, None, Scale()), Results(tmp_path)
    run_missing(cells, results, Means(1), ignore)
    outcome = outcome_of(tiny, cells, results, Scale(), "code")
    table = main_table(outcome)
    assert table.headings == ("speed", "policy", "of No-Packing", "cost", "JCT, h")
    assert [row.cells[:2] for row in table.rows] == [
        ("1", "no-packing"),
        ("1", "Eva <ours>"),
        ("0.8", "no-packing"),
        ("0.8", "Eva <ours>"),
        ("", "  published"),
    ]
    assert table.rows[0].cells[2] == "100.0%"
    assert table.rows[-1].cells[2] == "50.0%"
    assert "| *published* | *50.0%*" in markdown(table)
    assert [row.cells[-1] for row in claim_table(outcome.verdicts).rows][1] == "NO"
    figure = outcome.figure(0.8, "eva", RELATIVE_COST)
    assert figure is not None
    assert figure.spread is not None


class Page(HTMLParser):
    """What a browser would fetch, and whether tags close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "br", "link", "img"}:
            self.open.append(tag)
        for name, value in attrs:
            if name in {"src", "href", "xlink:href", "data", "action"} and value:
                self.references.append(value)
            if name == "id" and value:
                self.ids.add(value)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_one_command_leaves_tables_plots_and_a_report_that_needs_no_network(
    eva: Eva, tmp_path: Path
) -> None:
    file, out = tmp_path / "tiny.yaml", tmp_path / "out"
    file.write_text(TINY)
    found = eva("experiment", "run", str(file), "--out", str(out), "--jobs", "1", "--seeds", "1")
    assert found.code == 0
    assert "synthetic trace" in found.err
    made = {path.name for path in out.iterdir()}
    assert made == {
        *(f"tiny{ending}" for ending in (".md", ".json", ".svg", ".png")),
        "report.html",
        "cells",
    }
    told: dict[str, Any] = json.loads((out / "tiny.json").read_text())
    assert told["seeds"] == 1
    assert [claim["holds"] for claim in told["claims"]][1] is False
    text = (out / "report.html").read_text()
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert page.references
    assert all(reference.startswith("#") for reference in page.references)
    assert {reference[1:] for reference in page.references} <= page.ids
    assert re.findall(r"url\((?!#)|@import|<script", text) == []
    assert "Tiny &lt;&amp;&gt; experiment" in text
    assert str(tmp_path) not in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("gavell",), "did you mean 'gavel'"),
        (("/nowhere/x.yaml",), "/nowhere/x.yaml"),
        (("gavel", "--trace", "/nowhere.csv"), "/nowhere.csv"),
    ],
)
def test_wrong_usage_is_one_clear_error(
    eva: Eva, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    found = eva("experiment", "run", *arguments, "--out", str(tmp_path / "out"), "--quick")
    assert found.code == 2
    assert told in found.err


def test_the_list_names_every_experiment(eva: Eva) -> None:
    shown = eva("experiment", "list").out
    assert all(name in shown for name in built_in())
    assert "minutes of processor time" in shown


def test_the_example_in_the_documentation_is_an_experiment() -> None:
    text = (REPOSITORY / "docs" / "evaluation.md").read_text()
    start = text.index("    title: ")
    example = textwrap.dedent(text[start : text.index("\n\n", start)])
    assert read_experiment(example, "evaluation.md", "example").vary is not None
