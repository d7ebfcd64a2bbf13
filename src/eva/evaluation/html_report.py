"""One HTML file that holds everything: tables, pictures as inline SVG, style, and no network."""

from __future__ import annotations

import html
from collections.abc import Sequence

from eva import __version__
from eva.evaluation.outcome import Outcome
from eva.evaluation.tables import Text, claim_table, main_table

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff;
       max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 3rem; border-top: 1px solid #ddd;
     padding-top: 1.2rem; }
p.about, ul.about { max-width: 46rem; } p.facts, .published td, footer { color: #666; }
.scroll { overflow-x: auto; margin-top: 1.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13.5px; }
th, td { padding: .2rem .8rem .2rem 0; text-align: right; white-space: nowrap; }
th.name, td.name { text-align: left; } thead th { border-bottom: 1px solid #999; }
table.claims td.name { white-space: normal; min-width: 18rem; }
.published td { font-style: italic; }
.holds { color: #00723a; } .fails { color: #b00020; font-weight: 600; }
nav ol { columns: 2; } figure { margin: 1rem 0; overflow-x: auto; }
svg { max-width: 100%; height: auto; }
"""


def html_report(
    outcomes: Sequence[Outcome], pictures: Sequence[str | None], notices: Sequence[str]
) -> str:
    """`pictures` are SVG texts, one per outcome, None where there is none."""
    links = "".join(
        f'<li><a href="#{_text(one.experiment.name)}">{_text(one.experiment.title)}</a></li>'
        for one in outcomes
    )
    sections = "".join(
        _section(one, picture) for one, picture in zip(outcomes, pictures, strict=True)
    )
    notes = "".join(f"<p><strong>Note:</strong> {_text(notice)}</p>" for notice in notices)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Eva: the paper's evaluation</title><style>{_STYLE}</style></head><body>"
        "<h1>The paper's evaluation, simulated</h1>"
        "<p class=about>Figures of Chang and Venkataraman, <em>Eva: Cost-Efficient Cloud-Based "
        "Cluster Scheduling</em> (EuroSys 2025), stand in italics under ours and as black marks "
        "in the plots. Spreads are standard deviations over seeds.</p>"
        f"{notes}<nav><ol>{links}</ol></nav>{sections}"
        f"<footer><p>Eva {_text(__version__)}, code {_text(_code(outcomes))}.</p></footer>"
        "</body></html>\n"
    )


def _section(outcome: Outcome, picture: str | None) -> str:
    experiment = outcome.experiment
    part = "" if outcome.jobs is None else f", the first {outcome.jobs:,} jobs"
    seeds = f"{outcome.seeds} seed" + ("" if outcome.seeds == 1 else "s")
    drawn = "" if picture is None else f"<figure>{picture[picture.index('<svg') :]}</figure>"
    verdicts = outcome.verdicts
    notes = "".join(f"<li>{_text(note)}</li>" for note in experiment.notes)
    claims = _table(claim_table(verdicts), "claims") if verdicts else ""
    return (
        f'<section id="{_text(experiment.name)}"><h2>{_text(experiment.title)}</h2>'
        f"<p class=about>{_text(experiment.about)}</p>"
        f"<p class=facts>{_text(experiment.source)}. Trace: {_text(outcome.trace)}{part}; "
        f"{seeds}.</p>{drawn}{_table(main_table(outcome), 'main')}{claims}"
        f"{f'<ul class=about>{notes}</ul>' if notes else ''}</section>"
    )


def _table(table: Text, kind: str) -> str:
    def names(place: int) -> str:
        return ' class="name"' if place < table.names else ""

    head = "".join(
        f"<th{names(place)}>{_text(text)}</th>" for place, text in enumerate(table.headings)
    )
    body = ""
    for row in table.rows:
        cells = "".join(
            f"<td{names(place)}>{_marked(text, kind)}</td>" for place, text in enumerate(row.cells)
        )
        body += f"<tr{' class=published' if row.published else ''}>{cells}</tr>"
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _marked(text: str, kind: str) -> str:
    if kind == "claims" and text in {"yes", "NO"}:
        return f'<span class="{"holds" if text == "yes" else "fails"}">{text}</span>'
    return _text(text)


def _code(outcomes: Sequence[Outcome]) -> str:
    return ", ".join(dict.fromkeys(one.code for one in outcomes))


def _text(text: str) -> str:
    return html.escape(text, quote=True)
