"""Eight jobs live and simulated, as `make fidelity` does it with 32: the bills agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.fidelity.comparison import Comparison, compare, tables
from benchmarks.fidelity.measured import read_diaries
from benchmarks.fidelity.scenario import QUICK
from eva.model.units import cost_micros
from tests.end_to_end.live.cluster import LiveCluster


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fidelity")


@pytest.fixture(scope="module")
def eva(home: Path) -> Iterator[Comparison]:
    yield compare(QUICK, "eva", home)
    LiveCluster(home).until_empty()


def test_bills_agree(eva: Comparison) -> None:
    assert eva.ok, "\n".join(map(str, tables([eva])))
    dearer = replace(eva.live, bill_micros=2 * eva.live.bill_micros)
    assert not replace(eva, live=dearer).ok


def test_live_run_did_what_is_to_be_compared(eva: Comparison) -> None:
    """All finished, nothing failed, and tasks were packed and moved, in both worlds."""
    assert not eva.unfinished
    assert not eva.story.failures
    assert sum(job.migrations for job in eva.live.jobs) > 0
    assert eva.simulated.migrations > 0
    uptime = sum(cost_micros(each.hourly_micros, each.uptime_ms) for each in eva.live.instances)
    assert uptime == eva.live.bill_micros


def test_tasks_ran_as_long_as_their_work_takes(eva: Comparison) -> None:
    """No job was faster than alone, and some were slowed by their neighbours."""
    diaries = read_diaries(eva.live)
    slowed = 0
    for name, drawn in zip(eva.story.submitted, QUICK.trace.jobs, strict=True):
        copies = [each for (task, _), each in diaries.items() if task == f"{name}.0"]
        ran_ms = sum(
            each.get("checkpoint_ms", each.get("finished_ms", 0)) - each["progress_ms"]
            for each in copies
        )
        alone_ms = QUICK.live_ms(drawn.duration_ms)
        assert ran_ms >= alone_ms - 50 * len(copies), (name, copies)
        slowed += len(drawn.phases) == 1 and ran_ms > 1.03 * alone_ms
    assert slowed > 0


def test_what_the_machine_adds_is_paid_for(eva: Comparison) -> None:
    assert min(eva.added.setup_ms, eva.added.terminate_ms, eva.added.start_ms) > 0
    assert eva.unmeasured.total_cost_micros < eva.simulated.total_cost_micros
