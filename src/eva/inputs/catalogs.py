"""Price lists: the built-in ones, and yours as CSV or YAML.

One row is one instance type. Its CPU capacity may be stated in more than one unit: the paper's
types carry both vCPUs and physical cores, and which of them a "CPU" of a demand means is a choice
of the reader, not of the data. So `paper` and `paper-physical` are one file read in two ways.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from eva.inputs.amounts import CPUS, DELAY_S, GPUS, MEMORY_GB, USD_PER_HOUR
from eva.inputs.cells import Cells
from eva.inputs.problems import Problems, did_you_mean
from eva.inputs.tables import Columns, Row, Table, read_table
from eva.model.catalog import Catalog, InstanceDelays, InstanceType
from eva.model.errors import InputError
from eva.model.resources import NOTHING, Resources
from eva.model.spot import is_spot

CPU_COLUMNS = ("cpus", "vcpus", "physical_cores")  # in the order of preference
_DELAYS = ("acquire_s", "start_worker_s", "register_worker_s", "terminate_s")

COLUMNS = Columns(
    required=("instance_type", "family", "gpus", "memory_gb", "usd_per_hour"),
    optional=(*CPU_COLUMNS, "spot_usd_per_hour", "price_as_of", *_DELAYS),
    list_key="instance_types",
)


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A catalog that ships with Eva: its file in `eva/catalogs`, and how to read it."""

    name: str
    file: str
    cpu_column: str
    description: str


BUILT_IN: Mapping[str, BuiltIn] = {
    entry.name: entry
    for entry in (
        BuiltIn("paper", "paper.csv", "vcpus", "the paper's 21 EC2 types, CPUs as vCPUs"),
        BuiltIn(
            "paper-physical",
            "paper.csv",
            "physical_cores",
            "the same 21 types, CPUs as physical cores",
        ),
        BuiltIn(
            "aws",
            "aws.csv",
            "vcpus",
            "AWS us-east-1: GPU, compute, general and memory families, on-demand and typical spot",
        ),
    )
}


@cache
def builtin(name: str) -> Catalog:
    """The built-in catalog of that name, always the same object."""
    entry = BUILT_IN.get(name)
    if entry is None:
        raise _unknown(name)
    with resources.as_file(resources.files("eva") / "catalogs" / entry.file) as path:
        return _read(str(path), entry.name, entry.cpu_column)


def load(path_or_name: str, cpu_column: str | None = None) -> Catalog:
    """A built-in catalog by name, or the one in a CSV or YAML file.

    `cpu_column` says which column is the CPU capacity; by default the first of `CPU_COLUMNS` that
    the file has.
    """
    if path_or_name in BUILT_IN and cpu_column in {None, BUILT_IN[path_or_name].cpu_column}:
        return builtin(path_or_name)
    if path_or_name in BUILT_IN:
        return _read_built_in_as(BUILT_IN[path_or_name], cpu_column)
    if not Path(path_or_name).suffix and not Path(path_or_name).exists():
        raise _unknown(path_or_name)
    return _read(path_or_name, Path(path_or_name).name, cpu_column)


def _read_built_in_as(entry: BuiltIn, cpu_column: str | None) -> Catalog:
    with resources.as_file(resources.files("eva") / "catalogs" / entry.file) as path:
        return _read(str(path), f"{entry.name} ({cpu_column})", cpu_column)


def _unknown(name: str) -> InputError:
    hint = did_you_mean(name, BUILT_IN)
    return InputError.single(
        f"catalog {name!r}",
        f"neither a file nor built in{hint} (built in: {', '.join(BUILT_IN)})",
    )


def _read(path: str, name: str, cpu_column: str | None) -> Catalog:
    table, problems = read_table(path, COLUMNS)
    column = _cpu_column(table, cpu_column, problems)
    types = [_instance_type(row, column, Cells(row, problems)) for row in table.rows]
    _check_names(table, problems)
    problems.raise_if_any()
    return Catalog(name, tuple(kind for kind in types if kind is not None))


def _cpu_column(table: Table, asked: str | None, problems: Problems) -> str:
    if asked is not None:
        if asked not in CPU_COLUMNS:
            hint = did_you_mean(asked, CPU_COLUMNS)
            raise problems.fail(
                0, f"{asked!r} is no CPU column{hint} (known: {', '.join(CPU_COLUMNS)})"
            )
        if asked not in table.columns:
            raise problems.fail(table.header_line, f"column {asked!r} is missing")
        return asked
    found = next((column for column in CPU_COLUMNS if column in table.columns), None)
    if found is None:
        names = ", ".join(CPU_COLUMNS)
        raise problems.fail(table.header_line, f"a CPU column is missing (one of: {names})")
    return found


def _instance_type(row: Row, cpu_column: str, cells: Cells) -> InstanceType | None:
    name = cells.word("instance_type")
    family = cells.word("family")
    gpus = cells.amount("gpus", GPUS)
    cpus = cells.amount(cpu_column, CPUS)
    memory = cells.amount("memory_gb", MEMORY_GB)
    price = cells.amount("usd_per_hour", USD_PER_HOUR)
    spot = cells.optional_amount("spot_usd_per_hour", USD_PER_HOUR)
    delays = [cells.optional_amount(column, DELAY_S) or 0 for column in _DELAYS]
    _check_date(row, cells)
    for column, text in (("instance_type", name), ("family", family)):
        if is_spot(text or ""):
            cells.complain(
                f"{text!r} is what Eva calls it on spot; state spot_usd_per_hour", column
            )
    if name is None or family is None or None in {gpus, cpus, memory, price}:
        return None
    capacity = Resources(gpus or 0, cpus or 0, memory or 0)
    if capacity == NOTHING:
        cells.complain("has no capacity at all; state gpus, CPUs or memory_gb")
        return None
    return InstanceType(
        name, family, capacity, price or 0, InstanceDelays(*delays), spot, row.text("price_as_of")
    )


def _check_date(row: Row, cells: Cells) -> None:
    date = row.text("price_as_of")
    if date:
        try:
            dt.date.fromisoformat(date)
        except ValueError:
            cells.complain(f"{date!r} is not a date; write it as 2026-01-31", "price_as_of")


def _check_names(table: Table, problems: Problems) -> None:
    first: dict[str, int] = {}
    for row in table.rows:
        name = row.text("instance_type")
        if name and first.setdefault(name, row.line) != row.line:
            problems.add(row.line, f"{name!r} is already on line {first[name]}", "instance_type")
