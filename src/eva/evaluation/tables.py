"""An outcome as rows of text, from which terminal, Markdown and HTML tables are made, and as JSON.

Under each of our rows stands the published one, where the paper prints the figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eva.evaluation.experiment import Experiment
from eva.evaluation.outcome import COST, RELATIVE_COST, Figure, Outcome, Verdict

_SHARES = (RELATIVE_COST, "allocation.", "full_reconfiguration_share")
_REFERENCES = {
    "lower_bound_usd": "lower bound",
    "lower_bound_with_interference_usd": "bound with interference",
    "practical_floor_usd": "practical floor",
}


@dataclass(frozen=True, slots=True)
class Row:
    cells: tuple[str, ...]
    published: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A table: the first column (two, where a parameter varies) names, the others are numbers."""

    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    names: int

    def part(self, first: int, last: int) -> Text:
        """The names, and the columns from `first` up to but without `last`."""
        return Text(
            self.headings[: self.names] + self.headings[first:last],
            tuple(
                Row(row.cells[: self.names] + row.cells[first:last], row.published)
                for row in self.rows
            ),
            self.names,
        )


def main_table(outcome: Outcome, *, spreads: bool = True) -> Text:
    experiment = outcome.experiment
    vary = experiment.vary
    rows: list[Row] = []
    for value in experiment.values:
        start = () if value is None else (f"{value:g}",)
        for policy in experiment.policies:
            cells = [
                cell(measure, outcome.figure(value, policy, measure), spread=spreads)
                for measure in experiment.columns
            ]
            if any(cells):
                rows.append(Row((*start, experiment.label(policy), *cells)))
            rows += _published(experiment, value, policy, start)
        rows += _references(outcome, value, start)
    headings = () if vary is None else (vary.label,)
    return Text(
        (*headings, "policy", *experiment.columns.values()),
        tuple(rows),
        1 if vary is None else 2,
    )


def claim_table(verdicts: list[Verdict]) -> Text:
    rows = []
    for verdict in verdicts:
        least, most = (
            "" if end is None else number(verdict.claim.measure, end, relative=_is_ratio(verdict))
            for end in verdict.claim.between
        )
        low, high = (
            number(verdict.claim.measure, end, relative=_is_ratio(verdict))
            for end in (verdict.low, verdict.high)
        )
        ours = low if low == high else f"{low} to {high}"
        if least and most:
            theirs = f"{least} to {most}"
        else:
            theirs = f"at least {least}" if least else f"at most {most}"
        rows.append(Row((verdict.claim.text, theirs, ours, "yes" if verdict.holds else "NO")))
    return Text(("the paper says", "published", "ours", "holds"), tuple(rows), 1)


def as_json(outcome: Outcome) -> dict[str, Any]:
    experiment = outcome.experiment
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "trace": outcome.trace,
        "first_jobs": outcome.jobs,
        "seeds": outcome.seeds,
        "code": outcome.code,
        "parameter": None if experiment.vary is None else experiment.vary.parameter,
        "rows": [
            {
                "value": value,
                "policy": policy,
                "measures": {
                    measure: {"mean": found.mean, "sd": found.spread}
                    for measure in experiment.columns
                    if (found := outcome.figure(value, policy, measure)) is not None
                },
            }
            for value in experiment.values
            for policy in experiment.policies
        ],
        "references": [
            {"value": value, **measures} for value, measures in outcome.references.items()
        ],
        "published": [dict(row) for row in experiment.published],
        "claims": [
            {
                "text": verdict.claim.text,
                "published": list(verdict.claim.between),
                "low": verdict.low,
                "high": verdict.high,
                "holds": verdict.holds,
            }
            for verdict in outcome.verdicts
        ],
    }


def markdown(table: Text) -> str:
    aligned = [":--"] * table.names + ["--:"] * (len(table.headings) - table.names)
    rows = [
        tuple(f"*{text.strip()}*" if row.published and text else text for text in row.cells)
        for row in table.rows
    ]
    lines = [table.headings, tuple(aligned), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def cell(measure: str, figure: Figure | None, *, spread: bool = True) -> str:
    if figure is None:
        return ""
    text = number(measure, figure.mean)
    if not spread or figure.spread is None or not float(f"{figure.spread:.3g}"):
        return text
    return f"{text} ± {number(measure, figure.spread).removeprefix('$')}"


def number(measure: str, value: float, *, relative: bool = False) -> str:
    """As the paper writes such figures."""
    if relative or measure.startswith(_SHARES):
        return f"{value:.1%}"
    if measure.endswith("_usd"):
        return f"${value:,.0f}" if abs(value) >= 10_000 else f"${value:,.2f}"
    if measure.endswith("_s"):
        return f"{value:.3g}"
    if abs(value) >= 1_000 or (value == int(value) and abs(value) >= 10):
        return f"{value:,.0f}"
    return f"{value:.2f}"


def _is_ratio(verdict: Verdict) -> bool:
    return bool(verdict.claim.against)


def _published(
    experiment: Experiment, value: float | None, policy: str, start: tuple[str, ...]
) -> list[Row]:
    found = []
    for told in experiment.published:
        at = told.get("value")
        if told["policy"] != policy or (None if at is None else float(at)) != value:
            continue
        cells = [_told(measure, told) for measure in experiment.columns]
        found.append(Row((*("" for _ in start), "  published", *cells), published=True))
    return found


def _told(measure: str, told: Mapping[str, float | str]) -> str:
    value = told.get(measure)
    if value is None:
        return ""
    return value if isinstance(value, str) else number(measure, value)


def _references(outcome: Outcome, value: float | None, start: tuple[str, ...]) -> list[Row]:
    measures = outcome.references.get(value, {})
    base = outcome.figure(value, outcome.experiment.baseline, COST)
    found = []
    for name, label in _REFERENCES.items():
        if name in measures:
            relative = measures[name] / base.mean if base and base.mean else 0.0
            told = {COST: measures[name], RELATIVE_COST: relative}
            cells = [
                number(measure, told[measure]) if measure in told else ""
                for measure in outcome.experiment.columns
            ]
            found.append(Row((*start, label, *cells)))
    return found
