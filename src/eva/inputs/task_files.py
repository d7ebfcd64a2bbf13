"""Tasks for `eva solve`: what waits to be placed, from CSV, YAML or standard input.

    id,workload,gpus,cpus,memory_gb[,cpus.c7i,...][,job][,throughput][,throughput.p3][,duration_h]
    [,use_spot]

`cpus.<family>` (and `gpus.`, `memory_gb.`, `throughput.`) overrides one column on one family; an
empty cell overrides nothing. Where all of `gpus`, `cpus` and `memory_gb` are empty, the task runs
only on the families that it states in full. Rows with the same `job` are tasks of one job. With
`use_spot` true a task may run on spot instances too.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from eva.inputs.amounts import CPUS, DURATION_H, GPUS, MEMORY_GB, Unit
from eva.inputs.cells import Cells
from eva.inputs.problems import Problems
from eva.inputs.tables import Columns, Row, Table, read_table
from eva.model.ids import JobId, TaskId, Workload
from eva.model.jobs import StandaloneThroughput, TaskSpec
from eva.model.resources import NOTHING, Demand, Resources
from eva.model.snapshot import TaskView

_RESOURCES: tuple[tuple[str, Unit], ...] = (
    ("gpus", GPUS),
    ("cpus", CPUS),
    ("memory_gb", MEMORY_GB),
)
_NOT_OF_THE_SPEC = frozenset({"id", "job", "duration_h"})
_FASTEST = Decimal(10**12)

COLUMNS = Columns(
    required=("id", "workload", "gpus", "cpus", "memory_gb"),
    optional=("job", "throughput", "duration_h", "use_spot"),
    families=("gpus", "cpus", "memory_gb", "throughput"),
    list_key="tasks",
)


@dataclass(frozen=True, slots=True)
class TaskFile:
    """Waiting tasks in the order of the file, and how long their jobs run if it says so."""

    source: str
    tasks: tuple[TaskView, ...]
    durations_ms: dict[JobId, int]  # only the jobs that state one
    families: tuple[str, ...]  # named in columns


def load(path: str) -> TaskFile:
    """The tasks in the file at `path`; `-` is standard input."""
    table, problems = read_table(path, COLUMNS)
    families = _families(table)
    specs = _Specs(table, families, problems)
    tasks: list[TaskView] = []
    durations: dict[JobId, int] = {}
    for row in table.rows:
        cells = Cells(row, problems)
        name = cells.word("id")
        spec = specs.of(row)
        duration = cells.optional_amount("duration_h", DURATION_H)
        if name is None or spec is None:
            continue
        job = JobId(row.text("job") or name)
        tasks.append(TaskView(TaskId(name), job, spec))
        if duration is not None:
            durations[job] = max(duration, durations.get(job, 0))
    _check_ids(table, problems)
    problems.raise_if_any()
    return TaskFile(problems.source, tuple(tasks), durations, families)


def _families(table: Table) -> tuple[str, ...]:
    dotted = (column.partition(".") for column in table.columns)
    return tuple(
        sorted({family for base, dot, family in dotted if dot and base in COLUMNS.families})
    )


class _Specs:
    """The specs of rows; rows that say the same share one, so that look-ups are by identity."""

    def __init__(self, table: Table, families: tuple[str, ...], problems: Problems) -> None:
        self._columns = [name for name in table.columns if name not in _NOT_OF_THE_SPEC]
        self._families = families
        self._problems = problems
        self._known: dict[tuple[str | None, ...], TaskSpec] = {}

    def of(self, row: Row) -> TaskSpec | None:
        key = tuple(map(row.cells.get, self._columns))
        found = self._known.get(key)
        if found is None:  # new, or wrong: then every row of the kind is complained about
            found = _read_spec(Cells(row, self._problems), row, self._families)
            if found is not None:
                self._known[key] = found
        return found


def _read_spec(cells: Cells, row: Row, families: tuple[str, ...]) -> TaskSpec | None:
    workload = cells.word("workload")
    demand = _demand(cells, row, families)
    default = cells.optional_rate("throughput", most=_FASTEST, noun="throughput")
    stated = [
        (family, cells.optional_rate(f"throughput.{family}", most=_FASTEST, noun="throughput"))
        for family in families
    ]
    per_family = tuple((family, speed) for family, speed in stated if speed is not None)
    if workload is None or demand is None:
        return None
    return TaskSpec(Workload(workload), demand, StandaloneThroughput(default, per_family))


def _demand(cells: Cells, row: Row, families: tuple[str, ...]) -> Demand | None:
    has_default = any(row.text(column) for column, _ in _RESOURCES)
    named = [
        family
        for family in families
        if any(row.text(f"{column}.{family}") for column, _ in _RESOURCES)
    ]
    if not has_default and named:
        default = None
    else:
        default = _amounts(cells, [column for column, _ in _RESOURCES])
        if default is None:
            return None
    per_family: list[tuple[str, Resources]] = []
    complete = True
    for family in named:
        columns = [
            f"{column}.{family}" if default is None or row.text(f"{column}.{family}") else column
            for column, _ in _RESOURCES
        ]
        amounts = _amounts(cells, columns)
        complete = complete and amounts is not None
        if amounts is not None:
            per_family.append((family, amounts))
    spot = cells.flag("use_spot")
    return Demand(default, tuple(per_family), spot) if complete else None


def _amounts(cells: Cells, columns: list[str]) -> Resources | None:
    """The demand in these three columns, or None with every complaint on record."""
    read = [
        cells.amount(column, unit) for column, (_, unit) in zip(columns, _RESOURCES, strict=True)
    ]
    present = [amount for amount in read if amount is not None]
    if len(present) < len(_RESOURCES):
        return None
    amounts = Resources(*present)
    if amounts == NOTHING:
        cells.complain("asks for nothing; a task needs a GPU, CPU or memory", ", ".join(columns))
        return None
    return amounts


def _check_ids(table: Table, problems: Problems) -> None:
    """Ids are unique, and a job is not called like a task that has none."""
    first: dict[str, int] = {}
    jobless: dict[str, int] = {}
    for row in table.rows:
        name = row.text("id")
        if not name:
            continue
        if first.setdefault(name, row.line) != row.line:
            problems.add(row.line, f"{name!r} is already on line {first[name]}", "id")
        if not row.text("job"):
            jobless.setdefault(name, row.line)
    for row in table.rows:
        if row.text("job") in jobless:
            line = jobless[row.text("job")]
            problems.add(
                row.line, f"{row.text('job')!r} is the id of a task of its own (line {line})", "job"
            )
