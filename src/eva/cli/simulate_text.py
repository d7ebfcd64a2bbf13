"""The report of `eva simulate` for people: policies as columns, so that figures stand in line.

Everything is read top to bottom: what it cost, what was launched and moved, how jobs fared, and
where the money went.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

from eva.cli.console import stdout
from eva.evaluation.comparison import Scenario
from eva.evaluation.report import SPENT, Report, quantile
from eva.model.units import MICROS_PER_USD, MS_PER_HOUR

_UPTIME_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)

Cell = Callable[[Report], str]


def print_reports(scenario: Scenario, reports: Sequence[Report]) -> None:
    console = stdout()
    trace, settings = scenario.trace, scenario.settings
    hours = max(report.result.ended_ms for report in reports) / MS_PER_HOUR
    console.print(
        f"{trace.name}: {len(trace):,} jobs, {trace.tasks:,} tasks, {hours:,.0f} h simulated; "
        f"catalog {scenario.catalog.name}, interference {settings.interference.name}",
        soft_wrap=True,
        markup=False,
    )
    console.print()
    console.print(_measures(reports))
    console.print()
    console.print(_spent(reports))
    console.print()
    console.print(_uptime(reports))
    _print_notes(console, reports)


def _measures(reports: Sequence[Report]) -> Table:
    table = _table("", reports)
    for title, rows in _sections(reports).items():
        table.add_row(title, style="bold")
        for label, cell in rows.items():
            table.add_row(f"  {label}", *(cell(report) for report in reports))
    return table


def _sections(reports: Sequence[Report]) -> dict[str, dict[str, Cell]]:
    return {
        "Cost": {"total": lambda r: _usd(r.total_usd), **_references(reports)},
        "Instances": {
            "launched": lambda r: f"{r.result.instances_launched:,}",
            "tasks per instance": lambda r: f"{r.result.tasks_per_instance:.2f}",
            "GPU allocation": lambda r: _percent(r.result.allocation[0]),
            "CPU allocation": lambda r: _percent(r.result.allocation[1]),
            "memory allocation": lambda r: _percent(r.result.allocation[2]),
            **_spot(reports),
        },
        "Jobs": {
            "finished": lambda r: f"{r.result.jobs_finished:,} of {len(r.result.jobs):,}",
            "JCT mean, h": lambda r: f"{r.result.mean_jct_hours:.2f}",
            "JCT median, h": lambda r: f"{quantile(r.result.jct_hours, 0.5):.2f}",
            "JCT P95, h": lambda r: f"{quantile(r.result.jct_hours, 0.95):.2f}",
            "idle mean, h": lambda r: f"{r.result.mean_idle_hours:.2f}",
            "normalized throughput": lambda r: f"{r.result.normalized_throughput:.3f}",
        },
        "Reconfiguration": {
            "migrations per job": lambda r: f"{r.result.migrations_per_job:.2f}",
            "migrations per task": lambda r: f"{r.migrations_per_task:.2f}",
            "rounds": lambda r: f"{r.result.rounds:,}",
            "full ones adopted": lambda r: _percent(r.full_share),
            "CPU time, s": lambda r: f"{r.cpu_s:.1f}",
        },
    }


def _references(reports: Sequence[Report]) -> dict[str, Cell]:
    """One row per reference that was worked out, with its amount in the label."""
    found = reports[0].references
    named = {
        "No-Packing": found.no_packing_micros,
        "lower bound": found.lower_bound_micros,
        "bound with interference": found.slowed_bound_micros,
        "practical floor": found.floor_micros,
    }
    return {
        f"of {name} ({_usd(micros / MICROS_PER_USD, 0)})": _relative(micros)
        for name, micros in named.items()
        if micros
    }


def _spot(reports: Sequence[Report]) -> dict[str, Cell]:
    """What was on spot, where anything was."""
    if not any(report.result.spot_hours for report in reports):
        return {}
    return {
        "hours on spot": lambda r: f"{r.result.spot_hours:,.0f}",
        "interruptions": lambda r: f"{r.result.interruptions:,}",
    }


def _relative(micros: int) -> Cell:
    return lambda report: _percent(report.relative_to(micros) or 0.0)


def _spent(reports: Sequence[Report]) -> Table:
    table = _table("Where the money went", reports)
    for part in SPENT:
        cells = [
            f"{_usd(report.spent_usd[part], 0)} {_percent(_share(report, part)):>6}"
            for report in reports
        ]
        table.add_row(f"  {part}", *cells)
    return table


def _share(report: Report, part: str) -> float:
    return report.spent_usd[part] / report.total_usd if report.total_usd else 0.0


def _uptime(reports: Sequence[Report]) -> Table:
    table = _table("Uptime of instances, h", reports)
    for share in _UPTIME_SHARES:
        label = f"  {share:.0%} of them at most"
        cells = [f"{quantile(report.uptime_hours, share):.2f}" for report in reports]
        table.add_row(label, *cells)
    return table


def _print_notes(console: Console, reports: Sequence[Report]) -> None:
    notes = [f"{part}: {meaning}" for part, meaning in SPENT.items()]
    found = reports[0].references
    notes.append("No-Packing: every task alone on its cheapest type, in closed form.")
    if found.lower_bound_micros:
        notes.append("Lower bound: no schedule costs less, even without interference and delays.")
    if found.slowed_bound_micros is None:
        notes.append("--bounds all adds the bound with interference and the practical floor.")
    console.print()
    for note in notes:
        console.print(note, style="dim", highlight=False, markup=False)


def _table(title: str, reports: Sequence[Report]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(title, no_wrap=True)
    for report in reports:
        table.add_column(report.result.policy, justify="right", no_wrap=True)
    return table


def _usd(amount: float, places: int = 2) -> str:
    return f"${amount:,.{places}f}"


def _percent(share: float) -> str:
    return f"{share:.1%}"
