"""Generated traces have the properties that the paper states, for any seed, every time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eva.inputs.catalogs import builtin
from eva.model.errors import InputError
from eva.model.ids import Workload
from eva.model.resources import Demand, Resources
from eva.model.units import MS_PER_HOUR
from eva.scheduling.reservation_price import price_book
from eva.traces.drawing import Drawing, Durations
from eva.traces.sampled import (
    LARGE_PHYSICAL,
    MULTI_TASK_BENCHMARK,
    SMALL_PHYSICAL,
    Sampling,
    sampled_trace,
    tasks_at_once,
)
from eva.traces.statistics import PUBLISHED_DURATIONS, PUBLISHED_GPU_MIX, statistics_of
from eva.traces.synthetic import PAPER_JOBS, apportioned, synthetic_trace
from eva.traces.tables_in_out import csv_text
from eva.traces.timing import gavel_durations, poisson_arrivals
from eva.traces.trace import Trace, gpus_of
from eva.traces.variations import (
    with_gavel_durations,
    with_multi_gpu,
    with_multi_task,
    with_poisson_arrivals,
)
from eva.traces.workloads import KINDS, WORKLOADS, kind_of

PAPER = builtin("paper")
SYNTHETIC = synthetic_trace(Drawing(0), 1_000)

seeds = st.integers(0, 2**32 - 1)


def gpu_counts(trace: Trace) -> Counter[int]:
    return Counter(gpus_of(job.spec.tasks[0].demand) for job in trace.jobs)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_synthetic_trace_matches_the_published_tables(seed: int) -> None:
    found = statistics_of(synthetic_trace(Drawing(seed)))
    published = PUBLISHED_DURATIONS["alibaba"]
    assert found.jobs == PAPER_JOBS
    for gpus, share in PUBLISHED_GPU_MIX.items():
        assert found.gpu_mix[gpus] == pytest.approx(share, abs=0.0002)
    assert found.duration_hours.mean == pytest.approx(published.mean, rel=0.02)
    assert found.duration_hours.median == pytest.approx(published.median, rel=0.01)
    assert found.duration_hours.p80 == pytest.approx(published.p80, rel=0.01)
    assert found.duration_hours.p95 == pytest.approx(published.p95, rel=0.01)
    assert found.jobs_per_hour == pytest.approx(3, rel=0.05)


def test_every_synthetic_task_fits_the_paper_catalog() -> None:
    book = price_book(PAPER)
    assert all(book.price(job.spec.tasks[0]) is not None for job in SYNTHETIC.jobs)


def test_gavel_durations() -> None:
    hours = sorted(ms / MS_PER_HOUR for ms in gavel_durations(20_000, seed=0))
    published = PUBLISHED_DURATIONS["gavel"]
    assert sum(hours) / len(hours) == pytest.approx(published.mean, rel=0.03)
    assert hours[10_000] == pytest.approx(published.median, rel=0.06)
    assert hours[16_000] == pytest.approx(published.p80, rel=0.06)
    assert hours[19_000] == pytest.approx(published.p95, rel=0.06)
    assert hours[0] >= 10**1.5 / 60 - 1e-6
    assert hours[-1] <= 10**4 / 60 + 1e-6


def test_poisson_arrivals_stretch_with_their_mean() -> None:
    slow, fast = (poisson_arrivals(5_000, minutes * 60_000, 4) for minutes in (20, 10))
    assert slow == sorted(slow)
    assert slow[-1] / 5_000 == pytest.approx(20 * 60_000, rel=0.04)
    assert all(abs(a - 2 * b) <= 1 for a, b in zip(slow, fast, strict=True))
    assert poisson_arrivals(3, 0, 4) == [0, 0, 0]


def test_one_workload_per_distinct_demand() -> None:
    by_demand: dict[Demand, Workload] = {}
    for job in SYNTHETIC.jobs:
        (task,) = job.spec.tasks
        assert by_demand.setdefault(task.demand, task.workload) == task.workload
    assert len(set(by_demand.values())) == len(by_demand)
    numbers: dict[str, list[int]] = {}
    for name in by_demand.values():
        numbers.setdefault(kind_of(name), []).append(int(name.partition("[")[2][:-1]))
    assert set(numbers) <= set(KINDS)
    assert all(sorted(taken) == list(range(len(taken))) for taken in numbers.values())


@given(seeds, st.floats(0, 0.8))
def test_multi_gpu_share(seed: int, share: float) -> None:
    changed = with_multi_gpu(SYNTHETIC, share, PAPER, seed)
    before, after = gpu_counts(SYNTHETIC), gpu_counts(changed)
    wanted = round(share * len(SYNTHETIC))
    assert after[0] == before[0]
    assert after[2] + after[4] + after[8] == wanted
    assert after.total() == before.total()
    assert abs(after[2] - 0.5 * wanted) <= 1.5
    assert abs(after[4] - 0.4 * wanted) <= 1.5
    assert [(job.id, job.arrival_ms, job.duration_ms) for job in changed.jobs] == [
        (job.id, job.arrival_ms, job.duration_ms) for job in SYNTHETIC.jobs
    ]
    book = price_book(PAPER)
    assert all(book.price(job.spec.tasks[0]) is not None for job in changed.jobs)


def test_jobs_without_gpu_stay_as_they_are() -> None:
    changed = with_multi_gpu(SYNTHETIC, 0.5, PAPER, 1)
    for old, new in zip(SYNTHETIC.jobs, changed.jobs, strict=True):
        if gpus_of(old.spec.tasks[0].demand) == 0:
            assert new is old


def test_a_larger_share_keeps_what_a_smaller_one_changed() -> None:
    small, large = (with_multi_gpu(SYNTHETIC, share, PAPER, 1) for share in (0.2, 0.4))
    for few, many in zip(small.jobs, large.jobs, strict=True):
        if gpus_of(few.spec.tasks[0].demand) > 1:
            assert gpus_of(many.spec.tasks[0].demand) == gpus_of(few.spec.tasks[0].demand)


def test_gpus_are_scaled_where_the_trace_has_no_example() -> None:
    ones = SYNTHETIC.with_jobs(
        job for job in SYNTHETIC.jobs if gpus_of(job.spec.tasks[0].demand) == 1
    )
    changed = with_multi_gpu(ones, 1.0, PAPER, 0)
    for old, new in zip(ones.jobs, changed.jobs, strict=True):
        before, after = (job.spec.tasks[0].demand.on("p3") for job in (old, new))
        assert isinstance(before, Resources)
        assert isinstance(after, Resources)
        assert after.cpu_millis == min(before.cpu_millis * after.gpus, 64_000)


@pytest.mark.parametrize("share", [-0.1, 0.9, 1.1, float("nan")])
def test_impossible_shares_are_refused(share: float) -> None:
    with pytest.raises(InputError, match="share of multi-GPU jobs"):
        with_multi_gpu(SYNTHETIC, share, PAPER, 0)


@given(seeds, st.floats(0, 1))
def test_multi_task_share(seed: int, share: float) -> None:
    changed = with_multi_task(SYNTHETIC, share, seed)
    sizes = Counter(len(job.spec.tasks) for job in changed.jobs)
    wanted = round(share * len(SYNTHETIC))
    assert sizes[2] + sizes[4] == wanted
    assert 0 <= sizes[2] - sizes[4] <= 1
    for old, new in zip(SYNTHETIC.jobs, changed.jobs, strict=True):
        assert set(new.spec.tasks) == set(old.spec.tasks)
        assert len(new.phases) == len(new.spec.tasks)
        assert new.total_iterations == old.total_iterations


def test_variations_leave_the_rest_alone() -> None:
    gavel = with_gavel_durations(SYNTHETIC, 5)
    assert [job.arrival_ms for job in gavel.jobs] == [job.arrival_ms for job in SYNTHETIC.jobs]
    assert [job.duration_ms for job in gavel.jobs] == gavel_durations(1_000, 5)
    spread = with_poisson_arrivals(SYNTHETIC, 60_000, 5)
    assert [job.arrival_ms for job in spread.jobs] == poisson_arrivals(1_000, 60_000, 5)
    assert [job.spec for job in spread.jobs] == [job.spec for job in SYNTHETIC.jobs]
    drawn = synthetic_trace(Drawing(0, Durations.GAVEL), 1_000)
    assert drawn.jobs == with_gavel_durations(SYNTHETIC, 0).jobs


@pytest.mark.parametrize(("sampling", "jobs"), [(SMALL_PHYSICAL, 32), (LARGE_PHYSICAL, 120)])
def test_physical_scale(sampling: Sampling, jobs: int) -> None:
    made = sampled_trace("physical", sampling, 7)
    known = {(it.kind.name, it.tasks, it.demand) for it in WORKLOADS}
    assert len(made) == jobs
    for job in made.jobs:
        (task,) = set(job.spec.tasks)
        assert (kind_of(task.workload), len(job.spec.tasks), task.demand) in known
        assert 0.5 <= job.duration_ms / MS_PER_HOUR <= 3


def test_the_multi_task_benchmark() -> None:
    made = sampled_trace("benchmark", MULTI_TASK_BENCHMARK, 1)
    assert (len(made), made.tasks) == (100, 400)
    assert all(len(job.spec.tasks) == 4 and len(set(job.spec.tasks)) == 1 for job in made.jobs)
    hours = [job.duration_ms / MS_PER_HOUR for job in made.jobs]
    assert 0.5 <= min(hours) < 3
    assert 13 < max(hours) <= 16


def test_tasks_at_once() -> None:
    made = sampled_trace("at once", tasks_at_once(200), 1)
    assert (len(made), made.tasks) == (200, 200)
    assert {job.arrival_ms for job in made.jobs} == {0}


@given(st.integers(0, 10_000), st.dictionaries(st.text(), st.floats(0.01, 100), min_size=1))
def test_apportioning_uses_everything_and_is_fair(total: int, weights: dict[str, float]) -> None:
    counts = apportioned(total, weights)
    assert sum(counts.values()) == total
    for key, weight in weights.items():
        assert abs(counts[key] - total * weight / sum(weights.values())) < 1 + 1e-6


def test_seeds_matter_and_nothing_else_does() -> None:
    program = (
        "from eva.inputs.catalogs import builtin\n"
        "from eva.traces.drawing import Drawing\n"
        "from eva.traces.synthetic import synthetic_trace\n"
        "from eva.traces.variations import with_multi_gpu, with_multi_task\n"
        "from eva.traces.tables_in_out import csv_text\n"
        "import hashlib\n"
        "made = with_multi_gpu(synthetic_trace(Drawing(7), 500), 0.3, builtin('paper'), 7)\n"
        "print(hashlib.sha256(csv_text(with_multi_task(made, 0.4, 7)).encode()).hexdigest())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("0", "4242")
    }
    made = with_multi_gpu(synthetic_trace(Drawing(7), 500), 0.3, PAPER, 7)
    here = csv_text(with_multi_task(made, 0.4, 7)).encode()
    assert outputs == {hashlib.sha256(here).hexdigest()}
    assert csv_text(synthetic_trace(Drawing(8), 500)) != csv_text(synthetic_trace(Drawing(7), 500))
