"""`eva experiment --dask`: cells on a real Dask cluster, here one of a single worker, over TCP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eva.evaluation import campaign
from eva.evaluation.campaign import Means, run_missing
from eva.evaluation.cell import Cell
from eva.evaluation.experiment import Scale, cells_of, read_experiment
from eva.evaluation.results import Results
from eva.model.errors import EvaError, TryAgainError
from tests.support.requirements import require

TWO_CELLS = """
title: Two cells
source: nowhere
about: No-Packing at two speeds.
trace: gavel
first: 2
policies: [no-packing]
baseline: no-packing
vary: {parameter: interference, label: speed, values: [1.0, 0.8]}
columns: {total_cost_usd: cost}
minutes: 0.1
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    try:
        from dask.distributed import LocalCluster  # noqa: PLC0415  # an extra
    except ImportError:
        LocalCluster = None  # noqa: N806  # the name of a class
    require(LocalCluster, "the extra dask")
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None
    )
    with cluster:
        yield cluster.scheduler_address


@pytest.fixture
def cells() -> list[Cell]:
    return cells_of(read_experiment(TWO_CELLS, "two.yaml", "two"), None, Scale())


def test_a_cluster_gives_what_this_machine_gives(
    address: str, cells: list[Cell], tmp_path: Path
) -> None:
    here, there = Results(tmp_path / "here"), Results(tmp_path / "there")
    seen: list[Cell] = []
    run_missing(cells, here, Means(1), lambda _cell: None)
    run_missing(cells, there, Means(1, address), seen.append)
    assert sorted(cell.key for cell in seen) == sorted(cell.key for cell in cells)
    for cell in cells:
        ours, theirs = here.get(cell), there.get(cell)
        assert ours
        assert theirs
        assert {**ours, "cpu_s": 0} == {**theirs, "cpu_s": 0}


def test_a_worker_with_another_eva_is_refused_and_named(
    address: str, cells: list[Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "code_version", lambda: "of-another-day")
    results = Results(tmp_path)
    with pytest.raises(EvaError, match="2 of 2 cells failed") as caught:
        run_missing(cells, results, Means(1, address), lambda _cell: None)
    assert "here of-another-day); install the same one there" in str(caught.value)
    assert all(results.get(cell) is None for cell in cells)


@pytest.mark.usefixtures("address")  # skipped with it
def test_an_address_that_is_none_is_said_to_answer_nothing(
    cells: list[Cell], tmp_path: Path
) -> None:
    with pytest.raises(TryAgainError, match="no Dask scheduler answers at nowhere"):
        run_missing(cells, Results(tmp_path), Means(1, "nowhere"), lambda _cell: None)
