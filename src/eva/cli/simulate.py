"""`eva simulate`: what policies would have cost on a trace, in minutes instead of months."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eva.cli.catalog import CpuColumn, complete_catalog
from eva.cli.console import JsonOption, print_json, print_note, stderr
from eva.cli.policies import complete_policy, policy_named
from eva.cli.trace import SeedOption, TraceFile
from eva.traces.drawing import Drawing, Durations

if TYPE_CHECKING:
    from eva.evaluation.comparison import Run, Scenario, Wish
    from eva.evaluation.references import References
    from eva.model.catalog import Catalog
    from eva.traces.interference import Interference
    from eva.traces.trace import Trace


class Bounds(StrEnum):
    """`eva.evaluation.references.Bounds`, without importing a solver for `--help`."""

    NONE = "none"
    QUICK = "quick"
    ALL = "all"


class Migrate(StrEnum):
    PREPARE_FIRST = "prepare-first"
    STOP_FIRST = "stop-first"


def simulate(
    trace: TraceFile,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAME",
            help="Who plans: eva, no-packing, stratus, synergy, owl, eva-partial-only, ...",
            autocompletion=complete_policy,
        ),
    ] = "eva",
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="A,B,...",
            help="Several policies side by side instead of one; their JSON is a list.",
        ),
    ] = None,
    catalog: Annotated[
        str,
        typer.Option(
            "--catalog",
            "-c",
            metavar="NAME|FILE",
            help="What can be rented: a built-in catalog (eva catalog list) or a CSV or YAML file.",
            autocompletion=complete_catalog,
        ),
    ] = "paper",
    cpu_column: CpuColumn = None,
    durations: Annotated[
        Durations,
        typer.Option("--durations", help="As the trace says, or drawn by the model of Gavel."),
    ] = Durations.TRACED,
    first: Annotated[
        int | None, typer.Option("--first", min=1, help="Only so many jobs from the start.")
    ] = None,
    interference: Annotated[
        Path | None,
        typer.Option(
            "--interference",
            metavar="FILE",
            help="True speeds of workloads beside each other (CSV matrix: row slowed by column). "
            "Default: the paper's measurements. Policies have to find out.",
        ),
    ] = None,
    seed: SeedOption = 0,
    delays: Annotated[
        str,
        typer.Option(
            "--delays",
            metavar="fixed|sampled|xN",
            help="As given; each times a factor drawn from 0.5 to 1.5; or those of tasks N times.",
        ),
    ] = "fixed",
    migrate: Annotated[
        Migrate,
        typer.Option(
            "--migrate",
            help="Moving jobs run on until their new instances are ready, or stop at once.",
        ),
    ] = Migrate.PREPARE_FIRST,
    noise: Annotated[
        float,
        typer.Option(
            "--noise",
            min=0,
            max=1,
            metavar="S",
            help="Relative standard deviation of observed throughput.",
        ),
    ] = 0.0,
    spot: Annotated[
        float | None,
        typer.Option(
            "--spot",
            min=0,
            max=1_000,
            metavar="RATE",
            help="All jobs may run on spot instances, each of which the cloud takes back RATE "
            "times an hour on average, at two minutes' notice. Needs a catalog with spot prices.",
        ),
    ] = None,
    bounds: Annotated[
        Bounds,
        typer.Option(
            "--bounds",
            help="Which lower bounds to work out: none; the one without interference; or also the "
            "one with it and the practical floor (on thousands of jobs: a minute or two).",
        ),
    ] = Bounds.QUICK,
    events: Annotated[
        Path | None,
        typer.Option(
            "--events",
            metavar="FILE",
            help="Write every event as JSON lines. With --compare one file per policy: "
            "FILE.jsonl becomes FILE.POLICY.jsonl.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Draw instances, their tasks and the cost per hour over time (.svg, .png or "
            ".pdf; needs the extra 'plot'). With --compare one picture per policy, as above.",
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, metavar="N", help="Policies at a time; default: all cores."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run a trace of jobs through the real control loop on a virtual clock and price it.

    TRACE is Alibaba's pod list, the JSON of the paper's artifact, or our own CSV or Parquet
    (eva trace --help makes and converts them). Costs are compared with hosting every task alone
    (No-Packing, in closed form) and with what no scheduler could beat.

    Examples: eva simulate jobs.csv --policy eva --json;
    eva simulate pods.csv --durations gavel --compare no-packing,stratus,eva --plot cluster.svg
    """
    from eva.evaluation import references as reference
    from eva.evaluation.comparison import Scenario, Wish
    from eva.evaluation.delays import delays_named
    from eva.evaluation.pictures import check_plot
    from eva.inputs import catalogs
    from eva.simulator.settings import FaultSettings, SimulationSettings
    from eva.traces.interference import MEASURED, load_interference

    names = _names(policy, compare)
    truth = MEASURED if interference is None else load_interference(interference)
    settings = SimulationSettings(
        migrate=migrate.value,
        interference=truth,
        delays=delays_named(delays, seed, "--delays"),
        noise=noise,
        noise_seed=seed,
        faults=FaultSettings(seed, interruptions_per_hour=spot or 0.0),
    )
    prices = catalogs.load(catalog, cpu_column)
    if plot is not None:
        check_plot(plot)
    jobs = _trace(trace, prices, truth, Drawing(seed, durations), first)
    for notice in jobs.notices:  # on standard error, so beside JSON too
        print_note(notice)
    if spot is not None:
        jobs = _on_spot(jobs, prices)
    scenario = Scenario(jobs, prices, settings)
    runs = _run(
        scenario,
        reference.references_of(scenario.trace, prices, settings, reference.Bounds(bounds.value)),
        [Wish(name, _own(events, name, names), plot is not None) for name in names],
        processes or os.cpu_count() or 1,
    )
    if plot is not None:
        from eva.evaluation.timeline_plot import draw_timeline

        for name, run in zip(names, runs, strict=True):
            draw_timeline(run, _own(plot, name, names) or plot)
    reports = [run.report for run in runs]
    if json:
        told = [report.as_json() for report in reports]
        print_json(told if compare is not None else told[0])
        return
    from eva.cli.simulate_text import print_reports

    print_reports(scenario, reports)


def _names(policy: str, compare: str | None) -> list[str]:
    """The policies asked for, each once; every unknown name is complained about."""
    from eva.model.errors import InputError, Problem

    if compare is None:
        policy_named(policy)
        return [policy]
    names = list(dict.fromkeys(name.strip() for name in compare.split(",") if name.strip()))
    problems: list[Problem] = []
    for name in names:
        try:
            policy_named(name, "--compare")
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    if not names:
        raise InputError.single("--compare", "names no policy; give some, such as no-packing,eva")
    return names


def _trace(
    path: Path,
    catalog: Catalog,
    truth: Interference,
    drawing: Drawing,
    first: int | None,
) -> Trace:
    from eva.traces.load import load_trace
    from eva.traces.variations import with_gavel_durations

    trace = load_trace(path, catalog, truth.workloads, drawing)
    if drawing.durations is Durations.GAVEL:
        trace = with_gavel_durations(trace, drawing.seed)
    return trace if first is None else trace.first(first)


def _on_spot(trace: Trace, catalog: Catalog) -> Trace:
    from eva.model.errors import InputError
    from eva.traces.variations import allowing_spot

    if all(kind.spot_hourly_micros is None for kind in catalog):
        raise InputError.single(
            "--spot", f"catalog {catalog.name} has no price on spot; take one that has: -c aws"
        )
    return allowing_spot(trace)


def _own(path: Path | None, name: str, names: list[str]) -> Path | None:
    """The file for one of several policies: `cluster.svg` becomes `cluster.eva.svg`."""
    if path is None or len(names) == 1:
        return path
    return path.with_name(f"{path.stem}.{name}{path.suffix}")


def _run(
    scenario: Scenario, references: References, wishes: list[Wish], processes: int
) -> list[Run]:
    """With a bar on a terminal: how many tasks have ended, over all policies."""
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from eva.evaluation.comparison import compare

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    console = stderr()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        total = scenario.trace.tasks * len(wishes)
        bar = progress.add_task(", ".join(wish.policy for wish in wishes), total=total)
        return compare(
            scenario, references, wishes, lambda ended: progress.advance(bar, ended), processes
        )
