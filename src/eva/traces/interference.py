"""How fast tasks really run beside each other: the truth that the scheduler cannot see.

The measured matrix is the paper's Figure 1 (Chang and Venkataraman, EuroSys 2025): normalized
throughput of the row's workload beside the column's. What was not measured counts as 0.95.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eva.model.errors import InputError, Problem
from eva.model.units import parse_decimal
from eva.traces.content import read_text
from eva.traces.workloads import KINDS, kind_of

UNMEASURED = 0.95
SOURCE = "Chang and Venkataraman, Eva, EuroSys 2025, Figure 1"

Matrix = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class Interference:
    """Ground truth by kind of workload; the number in brackets does not matter."""

    name: str
    matrix: Matrix
    unmeasured: float = UNMEASURED
    _known: dict[tuple[str, str], float] = field(default_factory=dict, repr=False)

    def pair(self, workload: str, beside: str) -> float:
        """Normalized throughput of `workload` while `beside` runs on the same instance."""
        key = (workload, beside)
        try:
            return self._known[key]
        except KeyError:
            row = self.matrix.get(kind_of(workload), {})
            found = self._known[key] = row.get(kind_of(beside), self.unmeasured)
            return found

    @property
    def workloads(self) -> tuple[str, ...]:
        """The kinds that the matrix speaks of."""
        return tuple(self.matrix)


def _matrix(header: str, rows: str) -> Matrix:
    columns = header.split()
    matrix = {}
    for line in rows.strip().splitlines():
        name, *cells = line.split()
        measured = zip(columns, cells, strict=True)
        matrix[name] = {column: float(cell) for column, cell in measured if cell != "-"}
    return matrix


MEASURED = Interference(
    "measured",
    _matrix(
        "         resnet18  sage cyclegan  gpt2   gcn openfoam   seq   a3c   vit",
        """
        resnet18    0.928 0.973    0.999 0.919 0.835    0.990     -     - 0.928
        sage        0.853 0.889    0.970 0.975 0.882    0.955     -     - 0.908
        cyclegan    0.995 1        0.991 0.993 0.848    0.930     -     - 0.927
        gpt2        0.793 0.965    0.787 0.865 0.999    0.995     -     - 0.793
        gcn         0.915 0.898    0.952 0.981 0.904    0.962 0.953 0.647 0.915
        openfoam    0.805 0.978    0.978 0.986 0.950    0.966 0.828 0.937 0.805
        seq             -     -        -     - 0.992    0.997 0.933 0.889     -
        a3c             -     -        -     - 0.944    0.996 0.943 0.671     -
        vit         0.928 1        0.999 0.919 0.835    0.990     -     - 0.928
        """,
    ),
)


def uniform(throughput: float) -> Interference:
    """Every workload beside any other at `throughput`: the sweeps over interference."""
    if not 0 < throughput <= 1:
        raise InputError.single(
            "uniform interference", f"{throughput} is not a throughput; give one in (0, 1]"
        )
    return Interference(f"uniform {throughput:g}", {kind: {} for kind in KINDS}, throughput)


def load_interference(path: Path) -> Interference:
    """A matrix from CSV: the first column names the row's workload, the header the neighbours.

    Empty cells count as not measured. All problems are reported at once.
    """
    rows = list(csv.reader(io.StringIO(read_text(path))))
    if not rows or len(rows[0]) < 2:
        raise InputError.single(
            f"{path}:1", "has no header; the first line is `workload,NAME,NAME,...`"
        )
    problems: list[Problem] = []
    columns = [cell.strip() for cell in rows[0][1:]]
    problems += _name_problems(f"{path}:1", "column", columns)
    matrix: dict[str, Mapping[str, float]] = {}
    for line, cells in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in cells):
            continue
        name, where = cells[0].strip(), f"{path}:{line}"
        if name in matrix:
            problems.append(Problem(where, f"row {name!r} is given twice; keep one"))
        if not name:
            problems.append(Problem(where, "the first cell, the workload of the row, is empty"))
        matrix[name] = _row(where, columns, cells[1:], problems)
    for name in columns:
        if name and name not in matrix:
            problems.append(Problem(str(path), f"column {name!r} has no row of its own; add one"))
    if not matrix:
        problems.append(Problem(str(path), "has a header and no rows; add one per workload"))
    if problems:
        raise InputError(problems)
    return Interference(path.stem, matrix)


def _row(
    where: str, columns: list[str], cells: list[str], problems: list[Problem]
) -> Mapping[str, float]:
    if len(cells) != len(columns):
        problems.append(
            Problem(where, f"has {len(cells)} values for {len(columns)} columns; give one each")
        )
        return {}
    row: dict[str, float] = {}
    for column, cell in zip(columns, cells, strict=True):
        if not cell.strip():
            continue
        try:
            value = float(parse_decimal(cell))
        except ValueError as error:
            problems.append(Problem(where, f"column {column!r}: {error}"))
            continue
        if not 0 < value <= 1:
            problems.append(
                Problem(where, f"column {column!r} is {value:g}; throughputs lie in (0, 1]")
            )
        row[column] = value
    return row


def _name_problems(where: str, what: str, names: list[str]) -> list[Problem]:
    problems = [
        Problem(where, f"{what} {index} has no name")
        for index, name in enumerate(names, start=2)
        if not name
    ]
    repeated = sorted({name for name in names if name and names.count(name) > 1})
    return problems + [
        Problem(where, f"{what} {name!r} is given twice; keep one") for name in repeated
    ]
