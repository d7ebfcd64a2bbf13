"""The command line in this process, and a trace that takes a moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from eva.inputs.catalogs import builtin
from eva.model.catalog import Catalog
from eva.traces.drawing import Drawing, Durations
from eva.traces.synthetic import synthetic_trace
from eva.traces.trace import Trace
from eva.traces.write import write_trace
from tests.unit.cli.conftest import eva

__all__ = ["eva"]  # the fixture, for the tests of this folder


@pytest.fixture(scope="session")
def paper() -> Catalog:
    return builtin("paper")


@pytest.fixture(scope="session")
def trace() -> Trace:
    return synthetic_trace(Drawing(3, Durations.GAVEL), 30)


@pytest.fixture(scope="session")
def trace_file(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "small.csv"
    write_trace(trace, path)
    return path
