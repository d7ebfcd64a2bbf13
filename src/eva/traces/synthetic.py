"""A trace like Alibaba's, for those who do not have its file.

It matches what the paper publishes of the trace (EuroSys 2025, the tables of GPU mix and of job
durations) and draws the rest from a rough picture of the pods (Weng et al., USENIX ATC 2023): how
many vCPUs and GB the usual shapes with so many GPUs have. Jobs are dealt over the classes and the
quantiles evenly and only their order is random, so the statistics hold for every seed, even though
the longest hundredth of the jobs does most of all work.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from eva.model.errors import InputError
from eva.model.resources import Demand
from eva.model.units import MS_PER_HOUR, MS_PER_SECOND
from eva.traces.assembly import WorkloadNames, assembled, shape_of
from eva.traces.drawing import Drawing, Durations
from eva.traces.rng import Source, generator
from eva.traces.timing import gavel_durations, poisson_arrivals
from eva.traces.trace import Trace

Key = TypeVar("Key", bound=Hashable)

PAPER_JOBS = 6_274

GPU_MIX: Mapping[int, float] = {0: 0.1341, 1: 0.8617, 2: 0.0020, 4: 0.0018, 8: 0.0004}

# (vCPUs, GB): how often among pods with so many GPUs, in parts of the sum
_SHAPES: Mapping[int, Mapping[tuple[int, int], int]] = {
    0: {
        (13, 56): 36,
        (32, 48): 28,
        (8, 30): 16,
        (16, 50): 12,
        (17, 50): 9,
        (8, 16): 2,
        (12, 24): 1,
    },
    1: {
        (12, 48): 17,
        (12, 46): 15,
        (12, 47): 10,
        (8, 30): 11,
        (4, 23): 6,
        (19, 63): 5,
        (16, 57): 5,
        (4, 15): 4,
        (10, 41): 4,
        (4, 30): 4,
        (12, 24): 3,
        (12, 76): 3,
        (12, 16): 3,
        (4, 6): 3,
        (16, 32): 2,
        (8, 16): 2,
        (15, 57): 2,
        (6, 12): 2,
        (17, 123): 1,
        (1, 2): 1,
        (16, 64): 1,
    },
    2: {(6, 64): 4, (17, 65): 3, (18, 42): 2, (14, 59): 1},
    4: {(32, 128): 1},
    8: {(64, 256): 1},
}

# Quantiles of the duration in hours; between them the logarithm of the duration is linear. Median,
# P80 and P95 are published. P99 is that of the pods, and the longest is what makes the mean the
# published 9.1 h (it is 150 days, the length of the traced period).
_QUANTILES: Sequence[tuple[float, float]] = (
    (0.0, 0.002),
    (0.5, 0.2),
    (0.8, 1.0),
    (0.95, 5.2),
    (0.99, 38.8),
    (1.0, 3_610.0),
)


def synthetic_trace(drawing: Drawing, jobs: int = PAPER_JOBS) -> Trace:
    if jobs < 1:
        raise InputError.single("number of jobs", f"{jobs} is too few; a trace needs one")
    rng = generator(drawing.seed, Source.DEMANDS)
    demands = [Demand.of(*amount) for amount in _demands(jobs, rng)]
    names = WorkloadNames.drawn(drawing.seed)
    traced = drawing.durations is Durations.TRACED
    return assembled(
        "synthetic",
        [shape_of(names.of(demand), demand) for demand in demands],
        poisson_arrivals(jobs, drawing.mean_interarrival_ms, drawing.seed),
        (_durations if traced else gavel_durations)(jobs, drawing.seed),
    )


def _demands(jobs: int, rng: np.random.Generator) -> list[tuple[int, int, int]]:
    dealt: list[tuple[int, int, int]] = []
    for gpus, count in apportioned(jobs, GPU_MIX).items():
        for (cpus, memory_gb), share in apportioned(count, _SHAPES[gpus]).items():
            dealt += [(gpus, cpus, memory_gb)] * share
    return [dealt[int(index)] for index in rng.permutation(len(dealt))]


def apportioned(total: int, weights: Mapping[Key, float]) -> dict[Key, int]:
    """`total` divided in proportion to `weights`, the largest remainders rounded up."""
    scale = total / sum(weights.values())
    counts = {key: math.floor(weight * scale) for key, weight in weights.items()}
    order = sorted(weights, key=lambda key: counts[key] - weights[key] * scale)  # stable: ties keep
    for key in order[: total - sum(counts.values())]:
        counts[key] += 1
    return counts


def _durations(jobs: int, seed: int) -> list[int]:
    """One duration from each of `jobs` equal slices of the distribution, in random order."""
    rng = generator(seed, Source.DURATIONS)
    slices = (rng.permutation(jobs) + rng.random(jobs)) / jobs
    return [_duration_ms(float(quantile)) for quantile in slices]


def _duration_ms(quantile: float) -> int:
    """Whole seconds, as in Alibaba's list, and at least one."""
    above = bisect_right(_QUANTILES, quantile, key=lambda knot: knot[0])
    (low, start), (high, end) = _QUANTILES[above - 1], _QUANTILES[above]
    hours = start * math.pow(end / start, (quantile - low) / (high - low))
    return max(1, round(hours * MS_PER_HOUR / MS_PER_SECOND)) * MS_PER_SECOND
