"""What a bill is measured against stands in the right order, on small and lonely traces too."""

from __future__ import annotations

import pytest

from eva.evaluation.references import Bounds, references_of
from eva.model.catalog import Catalog
from eva.scheduling.policies import policy
from eva.simulator.driver import simulate
from eva.simulator.settings import SimulationSettings
from eva.traces.sampled import MULTI_TASK_BENCHMARK, sampled_trace

SETTINGS = SimulationSettings()


@pytest.mark.parametrize("jobs", [1, 4])
@pytest.mark.parametrize("seed", range(3))
def test_no_bound_exceeds_a_better_one_or_any_bill(paper: Catalog, jobs: int, seed: int) -> None:
    """Rounding and solvers that stop early weaken each bound in its own way."""
    trace = sampled_trace("few", MULTI_TASK_BENCHMARK.of(jobs), seed)
    found = references_of(trace, paper, SETTINGS, Bounds.ALL)
    assert found.lower_bound_micros is not None
    assert found.slowed_bound_micros is not None
    assert 0 < found.lower_bound_micros <= found.slowed_bound_micros
    for name in ("no-packing", "eva", "optimal"):
        bill = simulate(trace, policy(name), paper, SETTINGS).total_cost_micros
        assert found.slowed_bound_micros <= bill
        assert name != "no-packing" or bill == found.no_packing_micros
