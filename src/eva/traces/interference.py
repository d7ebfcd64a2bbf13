"""How fast tasks really run beside each other: the truth that the scheduler cannot see.

The measured matrix is the paper's Figure 1 (Chang and Venkataraman, EuroSys 2025): normalized
throughput of the row's workload beside the column's. What was not measured counts as 0.95.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from eva.inputs.problems import Problems
from eva.inputs.tables import Columns, check_columns, parse_csv
from eva.model.errors import InputError
from eva.traces.content import read_text
from eva.traces.fields import Record
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
    problems = Problems(str(path))
    table = parse_csv(read_text(path), problems)
    corner, *neighbours = table.columns
    check_columns(table, Columns(required=(corner, *neighbours)), problems)
    matrix: dict[str, Mapping[str, float]] = {}
    for row in table.rows:
        record = Record(problems, row.cells, row.line)
        name = record.text(corner)
        if name in matrix:
            record.complain(corner, f"{name!r} is there twice; keep one")
        matrix[name] = {
            beside: record.rate(beside, most=Decimal(1), noun="normalized throughput")
            for beside in neighbours
            if record.has(beside)
        }
    for name in neighbours:
        if name not in matrix:
            problems.add(0, "has no row of its own; add one", name)
    if not neighbours or not matrix:
        problems.add(0, "is no matrix; write `workload,NAME,...` and one row per name")
    problems.raise_if_any()
    return Interference(path.stem, matrix)
