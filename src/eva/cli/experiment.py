"""`eva experiment`: the paper's evaluation, run again and set beside the published figures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eva.cli.console import JsonOption, print_json, print_note, stderr, stdout

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from eva.evaluation.campaign import Means
    from eva.evaluation.cell import Cell
    from eva.evaluation.experiment import Experiment
    from eva.evaluation.outcome import Outcome
    from eva.evaluation.results import Results
    from eva.evaluation.tables import Text

app = typer.Typer(help="Run the paper's experiments, or yours.", no_args_is_help=True)

_QUICK_JOBS = 40


def complete_experiment(incomplete: str) -> list[str]:
    from eva.evaluation.experiment import built_in

    return [name for name in (*built_in(), "all") if name.startswith(incomplete)]


@app.command("list")
def list_experiments(json: JsonOption = False) -> None:
    """List the paper's experiments, with what each takes."""
    from rich.table import Table

    from eva.evaluation.experiment import Scale, built_in, cells_of

    found = built_in()
    if json:
        print_json([one.model_dump(mode="json") for one in found.values()])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, justify in (("name", "left"), ("cells", "right"), ("CPU min", "right")):
        table.add_column(heading, justify="right" if justify == "right" else "left", no_wrap=True)
    table.add_column("what it is", overflow="fold")
    for name, one in found.items():
        cells = len(cells_of(one, None, Scale()))
        table.add_row(name, str(cells), f"{one.minutes:g}", one.title)
    console = stdout()
    console.print(table)
    total = sum(one.minutes for one in found.values())
    console.print(f"\nall: about {total:.0f} minutes of processor time, shared by all cores.")


@app.command("run")
def run(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|all|FILE.yaml",
            help="See eva experiment list.",
            autocompletion=complete_experiment,
        ),
    ],
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="CSV",
            help="Alibaba's pod list (cluster-trace-gpu-v2023, openb_pod_list_default.csv); "
            "without it, a synthetic trace with the published statistics.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where results and the report go.")
    ] = Path("results"),
    processes: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Processes; default: all cores."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=1, max=1000, metavar="K", help="Seeds 0 to K-1 for each."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Sweeps over the whole trace, not its first jobs.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"The first {_QUICK_JOBS} jobs and one seed: a trial.")
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="ADDRESS",
            help="Run on an existing Dask cluster (tcp://host:8786) whose workers have this "
            "version of Eva, and the trace under the same path.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run experiments; what was run before with the same code is not run again.

    DIR then holds a table (Markdown, JSON) and a plot (SVG, PNG) per experiment, and report.html
    with all of them beside the published figures. Interrupt at any time; the same command goes on.

    Example: eva experiment run all --trace openb_pod_list_default.csv
    """
    from eva.evaluation.campaign import Means
    from eva.evaluation.cell import code_version
    from eva.evaluation.experiment import Scale, cells_of, find
    from eva.evaluation.outcome import outcome_of
    from eva.evaluation.publish import REPORT, publish
    from eva.evaluation.results import Results

    scale = Scale(
        seeds=seeds or (1 if quick else None), full=full, most_jobs=_QUICK_JOBS if quick else None
    )
    wanted = find(name)
    cells = {one.name: cells_of(one, trace, scale) for one in wanted}
    notices = _notices(wanted, trace, scale.most_jobs)
    for notice in notices:
        print_note(notice)
    results = Results(out)
    everything = [cell for of_one in cells.values() for cell in of_one]
    _run(everything, results, Means(processes or os.cpu_count() or 1, dask))
    outcomes = [outcome_of(one, cells[one.name], results, scale, code_version()) for one in wanted]
    publish(outcomes, out, notices)
    if json:
        from eva.evaluation.tables import as_json

        print_json([as_json(outcome) for outcome in outcomes])
    else:
        for outcome in outcomes:
            _print(outcome)
    stderr().print(f"{out / REPORT}: {len(outcomes)} experiments", markup=False)


def _notices(wanted: list[Experiment], trace: Path | None, most_jobs: int | None) -> list[str]:
    notices = []
    if trace is None and any(one.trace in {"alibaba", "gavel"} for one in wanted):
        notices.append(
            "no --trace is given: a synthetic trace with the published statistics stands in for "
            "Alibaba's, so dollars differ from the published ones"
        )
    if most_jobs is not None:
        notices.append(
            f"a trial with the first {most_jobs} jobs: these figures say little about the paper's"
        )
    return notices


def _run(cells: list[Cell], results: Results, means: Means) -> None:
    """With a bar on a terminal, else with a line now and then."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from eva.evaluation.campaign import run_missing

    console = stderr()
    with Progress(
        TextColumn("cells"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        bar = progress.add_task("", total=len(set(cells)))

        def done(cell: Cell) -> None:
            told = f"{cell.source.name} {cell.policy} seed {cell.seed}"
            progress.update(bar, advance=1, description=told)

        run_missing(cells, results, means, done)


def _print(outcome: Outcome) -> None:
    from eva.evaluation.tables import claim_table

    console = stdout()
    part = "" if outcome.jobs is None else f", first {outcome.jobs:,} jobs"
    console.print(f"\n{outcome.experiment.title}", style="bold", markup=False)
    console.print(f"{outcome.trace}{part}; {outcome.seeds} seed(s)", style="dim", markup=False)
    for table in _fitting(console, outcome):
        console.print(table)
    if outcome.verdicts:
        console.print()
        console.print(_table(claim_table(outcome.verdicts), wrap=True))
    for note in outcome.experiment.notes:
        console.print(f"- {note}", markup=False)


def _fitting(console: Console, outcome: Outcome) -> list[Table]:
    """One table where it fits, without spreads if need be, or else several with fewer columns."""
    from eva.evaluation.tables import main_table

    for spreads in (True, False):  # they are in the files too
        whole = _table(main_table(outcome, spreads=spreads))
        if _width(console, whole) <= console.width:
            return [whole]
    text = main_table(outcome, spreads=False)
    tables: list[Table] = []
    first = text.names
    while first < len(text.headings):
        last = first + 1
        while last < len(text.headings) and (
            _width(console, _table(text.part(first, last + 1))) <= console.width
        ):
            last += 1
        tables.append(_table(text.part(first, last)))
        first = last
    return tables


def _width(console: Console, table: Table) -> int:
    from rich.measure import Measurement

    anything = console.options.update(max_width=1_000)
    return Measurement.get(console, anything, table).maximum


def _table(text: Text, *, wrap: bool = False) -> Table:
    from rich.table import Table
    from rich.text import Text as RichText

    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, heading in enumerate(text.headings):
        named = place < text.names
        table.add_column(
            heading if named else _in_two_lines(heading),
            justify="left" if named else "right",
            vertical="top",
            no_wrap=not wrap,
            overflow="fold",
        )
    for row in text.rows:
        style = "dim italic" if row.published else ""
        table.add_row(*(RichText(cell, style=style) for cell in row.cells))
    return table


def _in_two_lines(heading: str) -> str:
    """Broken at the space nearest to the middle, so that figures stand closer together."""
    spaces = [place for place, letter in enumerate(heading) if letter == " "]
    if len(heading) < 10 or not spaces:
        return heading
    middle = min(spaces, key=lambda place: abs(2 * place - len(heading)))
    return f"{heading[:middle]}\n{heading[middle + 1 :]}"
