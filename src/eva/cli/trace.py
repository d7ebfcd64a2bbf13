"""`eva trace`: look at traces, make them, and turn one format into another."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eva.cli.console import JsonOption, print_json, print_note, stderr, stdout
from eva.traces.drawing import Drawing, Durations

if TYPE_CHECKING:
    from rich.table import Table

    from eva.model.catalog import Catalog
    from eva.traces.statistics import DurationSummary, TraceStatistics
    from eva.traces.trace import Trace

app = typer.Typer(help="Look at traces, make them, convert them.", no_args_is_help=True)


class Kind(StrEnum):
    """The traces that can be made from nothing."""

    SYNTHETIC = "synthetic"
    SMALL_PHYSICAL = "physical-32"
    LARGE_PHYSICAL = "physical-120"
    MULTI_TASK = "multi-task"


TraceFile = Annotated[
    Path,
    typer.Argument(
        metavar="TRACE",
        help="Alibaba pod list, artifact JSON (or .gz), our CSV or Parquet; told by content.",
    ),
]
OutFile = Annotated[
    Path,
    typer.Argument(metavar="OUT", help="Ends in .csv, .parquet or .json (or .csv.gz, .json.gz)."),
]
CatalogOption = Annotated[
    str,
    typer.Option(
        "--catalog", metavar="NAME|FILE", help="Some type of it must fit each task of a trace."
    ),
]
InterferenceOption = Annotated[
    Path | None,
    typer.Option("--interference", metavar="FILE", help="CSV matrix that names the workloads."),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything drawn.")]
DurationsOption = Annotated[
    Durations,
    typer.Option("--durations", help="As the trace says, or drawn by the model of Gavel."),
]
MeanOption = Annotated[
    float | None,
    typer.Option(
        "--mean-interarrival-min", min=0, max=1e6, help="Poisson arrivals with this mean, minutes."
    ),
]
MultiGpuOption = Annotated[
    float | None,
    typer.Option("--multi-gpu", min=0, max=1, help="Share of jobs with 2, 4 or 8 GPUs (5:4:1)."),
]
MultiTaskOption = Annotated[
    float | None,
    typer.Option("--multi-task", min=0, max=1, help="Share of jobs with 2 or 4 tasks (1:1)."),
]

_MS_PER_MINUTE = 60_000


@dataclass(frozen=True, slots=True)
class _Changes:
    """What is to be changed about a trace, None where nothing is asked."""

    drawing: Drawing
    mean_interarrival_min: float | None = None
    multi_gpu: float | None = None
    multi_task: float | None = None

    def apply(self, trace: Trace, catalog: Catalog) -> Trace:
        from eva.traces import variations

        seed = self.drawing.seed
        if self.drawing.durations is Durations.GAVEL:
            trace = variations.with_gavel_durations(trace, seed)
        if self.mean_interarrival_min is not None:
            mean_ms = round(self.mean_interarrival_min * _MS_PER_MINUTE)
            trace = variations.with_poisson_arrivals(trace, mean_ms, seed)
        if self.multi_gpu is not None:
            trace = variations.with_multi_gpu(trace, self.multi_gpu, catalog, seed)
        if self.multi_task is not None:
            trace = variations.with_multi_task(trace, self.multi_task, seed)
        return trace


@app.command("stats")
def show_statistics(
    trace: TraceFile,
    catalog: CatalogOption = "paper",
    interference: InterferenceOption = None,
    durations: DurationsOption = Durations.TRACED,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Show the paper's two trace tables (GPU mix, job durations) for a trace, and its size."""
    from eva.inputs.catalogs import load
    from eva.traces.statistics import statistics_of

    changes = _Changes(Drawing(seed, durations))
    kinds = load(catalog)
    loaded = changes.apply(_load(trace, kinds, interference, changes.drawing), kinds)
    found = statistics_of(loaded)
    if json:
        print_json({**found.as_json(), "notices": list(loaded.notices)})
        return
    _print_notices(loaded)
    console = stdout()
    console.print(_size(found), soft_wrap=True, markup=False)
    for table in (_mix_table(found), _duration_table(found)):
        console.print()
        console.print(table)


@app.command("convert")
def convert(
    trace: TraceFile,
    out: OutFile,
    catalog: CatalogOption = "paper",
    interference: InterferenceOption = None,
    first: Annotated[
        int | None, typer.Option("--first", min=1, help="Only so many jobs from the start.")
    ] = None,
    durations: DurationsOption = Durations.TRACED,
    mean_interarrival_min: MeanOption = None,
    multi_gpu: MultiGpuOption = None,
    multi_task: MultiTaskOption = None,
    seed: SeedOption = 0,
) -> None:
    """Write a trace in another format, with its composition changed if asked."""
    from eva.inputs.catalogs import load

    drawing = Drawing(seed, durations)
    changes = _Changes(drawing, mean_interarrival_min, multi_gpu, multi_task)
    kinds = load(catalog)
    loaded = _load(trace, kinds, interference, drawing)
    _print_notices(loaded)
    _write(changes.apply(loaded if first is None else loaded.first(first), kinds), out)


@app.command("generate")
def generate(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help=f"One of {', '.join(Kind)}.")],
    out: OutFile,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, max=10_000_000, help="How many jobs.")
    ] = None,
    catalog: CatalogOption = "paper",
    durations: DurationsOption = Durations.TRACED,
    mean_interarrival_min: MeanOption = None,
    multi_gpu: MultiGpuOption = None,
    multi_task: MultiTaskOption = None,
    seed: SeedOption = 0,
) -> None:
    """Make a trace: one like Alibaba's, the paper's physical-scale ones, or its micro-benchmark."""
    from eva.inputs.catalogs import load

    drawing = Drawing(seed, durations)
    changes = _Changes(drawing, mean_interarrival_min, multi_gpu, multi_task)
    _write(changes.apply(_generated(kind, jobs, drawing), load(catalog)), out)


def _generated(kind: Kind, jobs: int | None, drawing: Drawing) -> Trace:
    from eva.traces import sampled, synthetic

    if kind is Kind.SYNTHETIC:
        return synthetic.synthetic_trace(drawing, jobs or synthetic.PAPER_JOBS)
    sampling = {
        Kind.SMALL_PHYSICAL: sampled.SMALL_PHYSICAL,
        Kind.LARGE_PHYSICAL: sampled.LARGE_PHYSICAL,
        Kind.MULTI_TASK: sampled.MULTI_TASK_BENCHMARK,
    }[kind]
    return sampled.sampled_trace(kind.value, sampling.of(jobs or sampling.jobs), drawing.seed)


def _load(path: Path, catalog: Catalog, interference: Path | None, drawing: Drawing) -> Trace:
    from eva.traces.interference import MEASURED, load_interference
    from eva.traces.load import load_trace

    truth = MEASURED if interference is None else load_interference(interference)
    return load_trace(path, catalog, truth.workloads, drawing)


def _write(trace: Trace, out: Path) -> None:
    from eva.traces.write import write_trace

    write_trace(trace, out)
    stderr().print(f"{out}: {len(trace):,} jobs, {trace.tasks:,} tasks", markup=False)


def _print_notices(trace: Trace) -> None:
    for notice in trace.notices:
        print_note(notice)


def _size(found: TraceStatistics) -> str:
    rate = "all at once" if found.jobs_per_hour is None else f"{found.jobs_per_hour:.2f} an hour"
    return (
        f"{found.name}: {found.jobs:,} jobs ({found.multi_task_jobs:,} of several tasks), "
        f"{found.tasks:,} tasks, {found.distinct_workloads} workloads of "
        f"{len(found.workloads)} kinds\n"
        f"arrivals: {rate}, over {found.span_hours:,.1f} h"
    )


def _table(title: str, *headings: str) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def _mix_table(found: TraceStatistics) -> Table:
    from eva.traces.statistics import PUBLISHED_GPU_MIX

    columns = sorted(set(PUBLISHED_GPU_MIX) | set(found.gpu_mix))
    table = _table("Share of jobs by GPUs per task", *(str(gpus) for gpus in columns))
    mixes = {found.name: found.gpu_mix, "published (with failed pods)": PUBLISHED_GPU_MIX}
    for name, mix in mixes.items():
        table.add_row(name, *(f"{mix.get(gpus, 0):.2%}" for gpus in columns))
    return table


def _duration_table(found: TraceStatistics) -> Table:
    from eva.traces.statistics import PUBLISHED_DURATIONS

    table = _table("Job duration at full throughput, hours", "mean", "median", "P80", "P95")
    _add_durations(table, found.name, found.duration_hours)
    for name, summary in PUBLISHED_DURATIONS.items():
        _add_durations(table, f"published ({name.capitalize()})", summary)
    return table


def _add_durations(table: Table, name: str, hours: DurationSummary) -> None:
    figures = (hours.mean, hours.median, hours.p80, hours.p95)
    table.add_row(name, *(f"{figure:.1f}" for figure in figures))
