"""`load_trace`: any trace file, recognised by what is in it rather than by its name."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from eva.inputs.problems import Problems
from eva.inputs.tables import parse_csv
from eva.model.catalog import Catalog
from eva.model.errors import InputError
from eva.traces import alibaba, table
from eva.traces.alibaba import read_alibaba
from eva.traces.artifact import read_artifact
from eva.traces.content import as_text, read_bytes
from eva.traces.drawing import Drawing
from eva.traces.interference import MEASURED
from eva.traces.jobs_in import Setting
from eva.traces.tables_in_out import PARQUET_MAGIC, read_own_csv, read_parquet
from eva.traces.trace import Trace

USUAL_DRAWING = Drawing()


def load_trace(
    path: Path,
    catalog: Catalog,
    workloads: Collection[str] = MEASURED.workloads,
    drawing: Drawing = USUAL_DRAWING,
) -> Trace:
    """The trace in `path`, or one InputError that lists everything wrong with it.

    `workloads` are the kinds that the ground truth knows. `drawing` says how to fill what a pod
    list of Alibaba leaves open; the other formats leave nothing open.
    """
    setting = Setting(catalog, workloads)
    raw = read_bytes(path)
    if raw.startswith(PARQUET_MAGIC):
        return read_parquet(path, raw, setting)
    text = as_text(path, raw)
    start = text.lstrip()[:1]
    if not start:
        raise InputError.single(str(path), "is empty; a trace needs at least one job")
    if start in "{[":
        return read_artifact(path, text, setting)
    problems = Problems(str(path))
    rows = parse_csv(text, problems)
    header = set(rows.columns)
    if len(header & set(alibaba.COLUMNS.known)) > len(header & set(table.COLUMNS.known)):
        return read_alibaba(path, rows, problems, setting, drawing)
    if header & set(table.COLUMNS.known):
        return read_own_csv(path, rows, problems, setting)
    theirs, ours = (", ".join(it.required) for it in (alibaba.WITHOUT_TIMES, table.COLUMNS))
    raise InputError.single(
        f"{path}:{rows.header_line}",
        "is no trace that Eva knows: neither Parquet, nor a JSON object of jobs, nor CSV with "
        f"the columns of Alibaba's pod list ({theirs}, ...) or of our own ({ours}, ...)",
    )
