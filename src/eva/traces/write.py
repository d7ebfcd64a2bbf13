"""Traces out: our CSV or Parquet, or the artifact's JSON, by the ending of the file's name."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path

from eva.model.errors import InputError
from eva.traces.artifact import artifact_text
from eva.traces.tables_in_out import csv_text, parquet_bytes
from eva.traces.trace import Trace
from eva.traces.whole_file import write_whole

_WRITERS: Mapping[str, Callable[[Trace], bytes]] = {
    ".csv": lambda trace: csv_text(trace).encode(),
    ".json": lambda trace: artifact_text(trace).encode(),
    ".parquet": parquet_bytes,
    ".csv.gz": lambda trace: gzip.compress(csv_text(trace).encode(), mtime=0),
    ".json.gz": lambda trace: gzip.compress(artifact_text(trace).encode(), mtime=0),
}


def write_trace(trace: Trace, path: Path) -> None:
    """Write `trace` in the format that the name of `path` asks for."""
    ending = next((ending for ending in _WRITERS if path.name.endswith(ending)), None)
    if ending is None:
        raise InputError.single(
            str(path), f"ends in no format of traces; use one of {', '.join(_WRITERS)}"
        )
    write_whole(path, _WRITERS[ending](trace))
