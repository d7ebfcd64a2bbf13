"""What a campaign leaves in its folder: tables, pictures, and one report that holds them all.

OUT/cells/KEY.json        results of cells, from which all the rest is made again in a moment
OUT/EXPERIMENT.md .json   tables
OUT/EXPERIMENT.svg .png   plots (with the extra `plot`)
OUT/report.html           everything in one file
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from eva.evaluation.figures import draw
from eva.evaluation.html_report import html_report
from eva.evaluation.outcome import Outcome
from eva.evaluation.pictures import picture_bytes, plotting_works
from eva.evaluation.tables import as_json, claim_table, main_table, markdown
from eva.traces.whole_file import write_whole

REPORT = "report.html"


def publish(outcomes: Sequence[Outcome], folder: Path, notices: Sequence[str]) -> None:
    pictures = [_publish_one(outcome, folder) for outcome in outcomes]
    told = list(notices)
    if not plotting_works():
        told.append("no plots: matplotlib is not installed (pip install 'eva-scheduler[plot]')")
    write_whole(folder / REPORT, html_report(outcomes, pictures, told).encode())


def _publish_one(outcome: Outcome, folder: Path) -> str | None:
    """The plot as SVG, for the report."""
    name = outcome.experiment.name
    write_whole(folder / f"{name}.md", _markdown(outcome).encode())
    write_whole(folder / f"{name}.json", (json.dumps(as_json(outcome), indent=1) + "\n").encode())
    figure = draw(outcome) if plotting_works() else None
    if figure is None:
        return None
    svg = picture_bytes(figure, "svg")
    write_whole(folder / f"{name}.svg", svg)
    write_whole(folder / f"{name}.png", picture_bytes(figure, "png"))
    return svg.decode()


def _markdown(outcome: Outcome) -> str:
    experiment = outcome.experiment
    part = "" if outcome.jobs is None else f", the first {outcome.jobs:,} jobs"
    facts = f"{experiment.source}. Trace: {outcome.trace}{part}; seeds: {outcome.seeds}."
    parts = [
        f"# {experiment.title}",
        experiment.about.strip(),
        f"{facts} Published figures in italics.",
        markdown(main_table(outcome)),
    ]
    if outcome.verdicts:
        parts.append(markdown(claim_table(outcome.verdicts)))
    parts += [f"- {note}" for note in experiment.notes]
    return "\n\n".join(parts).rstrip() + "\n"
