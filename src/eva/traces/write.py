"""Traces out: our CSV or Parquet, or the artifact's JSON, by the ending of the file's name.

A file appears whole or not at all: it is written beside its place and then moved there.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from eva.model.errors import InputError
from eva.traces.artifact import artifact_text
from eva.traces.tables_in_out import csv_text, parquet_bytes
from eva.traces.trace import Trace

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
    _replace(path, _WRITERS[ending](trace))


def _replace(path: Path, content: bytes) -> None:
    try:
        handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(beside).chmod(0o644)
            Path(beside).replace(path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                Path(beside).unlink()
            raise
    except OSError as error:
        raise InputError.single(str(path), f"cannot be written: {error.strerror}") from None
