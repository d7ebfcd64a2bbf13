"""`eva solve` for people: the summary, the instances, and for each kind of instance the reason.

Instances of one type that host the same mix of workloads are told apart by their tasks only, so
they share a line; a thousand tasks then still fit on a screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eva.cli.console import stdout
from eva.cli.money import percent, places_for
from eva.cli.solving import Solution
from eva.model.ids import TaskId
from eva.model.plan import Unplaceable
from eva.model.units import MICROS_PER_USD, format_usd
from eva.scheduling.explanation import Reason, Share

_IDS_SHOWN = 6
_LARGE_MICROS = 100 * MICROS_PER_USD  # of such sums nobody reads tenths of a cent


@dataclass(frozen=True, slots=True)
class _Kind:
    """Instances of one type with the same mix of workloads."""

    reasons: tuple[Reason, ...]

    @property
    def first(self) -> Reason:
        return self.reasons[0]

    @property
    def title(self) -> str:
        name = self.first.planned.type.name
        return f"{len(self.reasons)} x {name}" if len(self.reasons) > 1 else name

    @property
    def tasks(self) -> list[TaskId]:
        return [task for reason in self.reasons for task in reason.planned.tasks]


def print_solution(solution: Solution) -> None:
    console = stdout()
    kinds = list(_kinds(solution.reasons))
    prices = {kind.hourly_micros for kind in solution.catalog}
    places = places_for(prices)
    _print_summary(console, solution, places)
    if kinds:
        console.print()
        console.print(_instances(kinds, places))
        console.print("\nWhy", style="bold")
        for kind in kinds:
            _print_reason(console, kind, places)
    if solution.plan.unplaceable:
        _print_unplaceable(console, solution.plan.unplaceable)


def _kinds(reasons: Iterable[Reason]) -> Iterator[_Kind]:
    groups: dict[tuple[object, ...], list[Reason]] = {}
    for reason in reasons:
        mix = tuple(
            (share.workload, share.worth_micros, len(share.tasks)) for share in reason.shares
        )
        groups.setdefault((reason.planned.type.name, mix), []).append(reason)
    for group in groups.values():
        yield _Kind(tuple(group))


def _print_summary(console: Console, solution: Solution, places: int) -> None:
    placed = solution.tasks - len(solution.plan.unplaceable)
    if solution.plan.hourly_micros >= _LARGE_MICROS:
        places = 2
    cost = format_usd(solution.plan.hourly_micros, places)
    headline = Text.assemble(
        (f"{cost} per hour", "bold green"),
        f" for {_count(placed, 'task')} on {_count(len(solution.plan.instances), 'instance')}",
        f" (policy {solution.policy}, catalog {solution.catalog.name})",
    )
    console.print(headline)
    if solution.plan.risk_micros:
        paid, risk = (
            format_usd(micros, places)
            for micros in (solution.plan.billed_micros, solution.plan.risk_micros)
        )
        console.print(
            f"  of which {paid} is paid and {risk} is the risk of interruption on spot",
            highlight=False,
        )
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column()
    saved, gap = solution.saved, solution.gap
    grid.add_row(
        "No-Packing",
        format_usd(solution.no_packing_micros, places),
        "" if saved is None else f"each task on its own instance; this plan: {percent(-saved)}",
    )
    grid.add_row(
        "lower bound",
        format_usd(solution.lower_bound_micros, places),
        "" if gap is None else f"no configuration costs less; this plan: {percent(gap)}",
    )
    console.print(Padding(grid, (0, 0, 0, 2), expand=False))


def _instances(kinds: list[_Kind], places: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("instances", no_wrap=True)
    for heading in ("$/hour", "worth", "saves"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("tasks", overflow="fold", ratio=1)
    for kind in kinds:
        count = len(kind.reasons)
        planned = kind.first.planned
        table.add_row(
            kind.title,
            format_usd(count * planned.type.hourly_micros, places),
            format_usd(count * planned.value_micros, places),
            format_usd(count * planned.saving_micros, places),
            _ids(kind.tasks),
        )
    return table


def _print_reason(console: Console, kind: _Kind, places: int) -> None:
    planned, shares = kind.first.planned, kind.first.shares
    price = format_usd(planned.type.hourly_micros, places)
    if planned.type.risk_micros:
        risk = format_usd(planned.type.risk_micros, places)
        price += f" (of which {risk} for the risk of interruption)"
    each = " each" if len(kind.reasons) > 1 else ""
    console.print(
        Text.assemble((kind.title, "bold"), f" at {price}{each}: {_verdict(kind, places)}")
    )
    if len(planned.tasks) == 1:
        return
    for share in shares:
        console.print(Padding(Text(_share(share, places)), (0, 0, 0, 4), expand=False))


def _verdict(kind: _Kind, places: int) -> str:
    reason = kind.first
    planned = reason.planned
    worth = format_usd(planned.value_micros, places)
    if len(planned.tasks) == 1:
        (share,) = reason.shares
        who = share.tasks[0] if len(kind.reasons) == 1 else f"one {share.workload}"
        if planned.type.name == share.alone_on.name:
            return f"{who}, alone on the cheapest type that holds it"
        return f"{who}, alone; it is worth {worth}"
    apart = f"apart its tasks would cost {format_usd(reason.apart_micros, places)}"
    if planned.value_micros == reason.apart_micros:
        return apart
    return f"{apart}; together, at the speeds below, they are worth {worth}"


def _share(share: Share, places: int) -> str:
    count = len(share.tasks)
    who = f"{share.tasks[0]} ({share.workload})" if count == 1 else f"{count} x {share.workload}"
    alone = format_usd(share.alone_micros, places)
    worth = format_usd(share.worth_micros, places)
    each = " each" if count > 1 else ""
    line = f"{who}: {alone}{each} alone on {share.alone_on.name}"
    if share.worth_micros == share.alone_micros:
        return line
    return f"{line}; here {worth}, at {100 * share.throughput:.4g}% speed"


def _print_unplaceable(console: Console, missing: tuple[Unplaceable, ...]) -> None:
    console.print(f"\nNot placed: {_count(len(missing), 'task')}", style="bold red")
    by_reason: dict[str, list[TaskId]] = {}
    for task in missing:
        by_reason.setdefault(task.reason, []).append(task.task)
    for reason, tasks in by_reason.items():
        console.print(Padding(Text(f"{_ids(tasks)}: {reason}"), (0, 0, 0, 2), expand=False))


def _ids(tasks: list[TaskId]) -> str:
    if len(tasks) <= _IDS_SHOWN:
        return ", ".join(tasks)
    return f"{', '.join(tasks[: _IDS_SHOWN - 1])} and {len(tasks) - _IDS_SHOWN + 1:,} more"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
