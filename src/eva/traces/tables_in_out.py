"""CSV and Parquet as carriers of our table; Parquet through pyarrow, which is an extra."""

from __future__ import annotations

import csv
import io
from importlib import import_module
from pathlib import Path
from typing import Any

from eva.inputs.problems import Problems
from eva.inputs.tables import Columns, Table, check_columns
from eva.model.errors import OperatorError
from eva.traces.fields import Record
from eva.traces.jobs_in import Setting, TraceBuilder
from eva.traces.table import COLUMNS, read_records, rows_of
from eva.traces.trace import Trace

PARQUET_MAGIC = b"PAR1"


def read_own_csv(path: Path, table: Table, problems: Problems, setting: Setting) -> Trace:
    """`problems` are those that reading the table found; what is wrong with the jobs joins them."""
    require_columns(table, COLUMNS, problems)
    records = (Record(problems, row.cells, row.line) for row in table.rows)
    return read_records(records, TraceBuilder(problems, setting), path.name.partition(".")[0])


def require_columns(table: Table, columns: Columns, problems: Problems) -> None:
    """Without the right columns there is no sense in complaining about every row."""
    before = len(problems)
    check_columns(table, columns, problems)
    if len(problems) > before:
        problems.raise_if_any()


def csv_text(trace: Trace) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS.known, lineterminator="\n")
    writer.writeheader()
    for row in rows_of(trace):
        flag = "true" if row["reports_throughput"] else "false"
        writer.writerow(row | {"reports_throughput": flag})
    return out.getvalue()


def read_parquet(path: Path, raw: bytes, setting: Setting) -> Trace:
    arrow = _pyarrow()
    problems = Problems(str(path))
    try:
        table = arrow.parquet.read_table(arrow.BufferReader(raw))
    except (arrow.ArrowException, OSError) as error:
        complaint = f"is not a whole Parquet file ({error}); was it cut short?"
        raise problems.fail(0, complaint) from None
    names = tuple(table.column_names)
    require_columns(Table(names, (), 0), COLUMNS, problems)
    columns = [table.column(name).to_pylist() for name in names]
    records = (
        Record(problems, dict(zip(names, cells, strict=True)), place=f"row {number}")
        for number, cells in enumerate(zip(*columns, strict=True), start=1)
    )
    return read_records(records, TraceBuilder(problems, setting), path.name.partition(".")[0])


def parquet_bytes(trace: Trace) -> bytes:
    arrow = _pyarrow()
    rows = list(rows_of(trace))
    table = arrow.table({name: [row[name] for row in rows] for name in COLUMNS.known})
    sink = arrow.BufferOutputStream()
    arrow.parquet.write_table(table, sink)
    return bytes(sink.getvalue())


def _pyarrow() -> Any:  # untyped upstream; a few calls of it stay in this file
    """pyarrow, only where Parquet is wanted: it is an extra, and slow to import."""
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError:
        raise OperatorError(
            "Parquet traces need pyarrow; install it with `pip install eva-scheduler[parquet]`, "
            "or use CSV"
        ) from None
