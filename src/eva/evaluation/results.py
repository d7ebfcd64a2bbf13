"""Results of cells in a folder, one small file each, whole or not at all.

A run that was interrupted goes on where it stopped, two runs at once do no harm, and deleting a
file is how to have its cell run again.
"""

from __future__ import annotations

import json
from pathlib import Path

from eva import __version__
from eva.evaluation.cell import Cell, code_version
from eva.evaluation.cell_run import Measures
from eva.model.errors import InputError
from eva.traces.whole_file import write_whole


class Results:
    def __init__(self, folder: Path) -> None:
        self._folder = folder / "cells"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError.single(
                str(folder), f"cannot hold results: {error.strerror}; give another --out"
            ) from None

    def get(self, cell: Cell) -> Measures | None:
        """None where the cell was not run, or its file is damaged."""
        try:
            found = json.loads(self._path(cell).read_text("utf-8"))
            return {str(name): float(value) for name, value in found["measures"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def put(self, cell: Cell, measures: Measures) -> None:
        told = {
            "cell": cell.as_json(),
            "eva": __version__,
            "code": code_version(),
            "measures": measures,
        }
        write_whole(self._path(cell), json.dumps(told, indent=1).encode())

    def _path(self, cell: Cell) -> Path:
        return self._folder / f"{cell.key}.json"
