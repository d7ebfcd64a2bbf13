"""Figures known in closed form: what No-Packing costs on the published traces."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eva.inputs.catalogs import builtin
from eva.model.units import micros_to_usd
from eva.scheduling.baselines.no_packing import NoPacking
from eva.simulator.driver import simulate
from eva.simulator.settings import SimulationSettings
from eva.traces.load import load_trace
from tests.support.requirements import REPOSITORY, require, shared_folder

pytestmark = pytest.mark.published

SCRIPT = """
import sys
from pathlib import Path
from eva.inputs.catalogs import builtin
from eva.scheduling.baselines.no_packing import NoPacking
from eva.simulator.driver import simulate
from eva.simulator.settings import SimulationSettings
from eva.traces.load import load_trace
catalog = builtin("paper")
trace = load_trace(Path(sys.argv[1]), catalog)
settings = SimulationSettings(journal_hash=True)
print(simulate(trace, NoPacking(), catalog, settings).journal_hash)
"""


def _published(name: str) -> Path:
    folder = shared_folder()
    require(folder, "the folder of published traces")
    assert folder is not None
    return folder / "data" / name


def test_no_packing_on_the_200_jobs() -> None:
    catalog = builtin("paper")
    trace = load_trace(_published("pai_200.json"), catalog)
    result = simulate(trace, NoPacking(), catalog)
    assert micros_to_usd(result.total_cost_micros) == pytest.approx(20_736.38, rel=0.001)
    assert result.mean_jct_hours == pytest.approx(17.67, abs=0.01)
    assert result.jobs_finished == result.instances_launched == 200
    assert result.tasks_per_instance == pytest.approx(0.995, abs=0.005)
    assert result.normalized_throughput == 1
    assert result.migrations == 0


def test_bill_and_categories_agree() -> None:
    catalog = builtin("paper")
    trace = load_trace(_published("pai_200.json"), catalog)
    result = simulate(trace, NoPacking(), catalog, SimulationSettings(checks="off"))
    assert sum(result.spent_micros.values()) == pytest.approx(result.total_cost_micros, rel=1e-6)
    assert sum(row.cost_micros for row in result.instances) == result.total_cost_micros


def test_the_journal_does_not_depend_on_hash_seeds() -> None:
    path = _published("pai_200.json")
    hashes = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=REPOSITORY,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "7")
    }
    assert len(hashes) == 1
