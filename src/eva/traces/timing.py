"""When jobs arrive and how long they take: the distributions of the paper's evaluation.

All answers are integer milliseconds. An arrival stream is drawn in units of its mean, so that a
sweep over the rate stretches one and the same stream.
"""

from __future__ import annotations

import numpy as np

from eva.model.errors import InputError
from eva.traces.rng import Source, generator

_MS_PER_MINUTE = 60_000


def poisson_arrivals(count: int, mean_ms: int, seed: int) -> list[int]:
    """Arrival times of a Poisson process that starts at 0; a mean of 0 is all at once."""
    if mean_ms < 0:
        raise InputError.single("mean interarrival time", f"{mean_ms} ms is negative")
    gaps = generator(seed, Source.ARRIVALS).exponential(1.0, count)
    return _whole(np.cumsum(gaps) * mean_ms)


def gavel_durations(count: int, seed: int) -> list[int]:
    """Gavel's model: 10^x minutes, x uniform in [1.5, 3] for 80% of jobs, else in [3, 4]."""
    rng = generator(seed, Source.DURATIONS)
    short = rng.random(count) < 0.8
    exponent = np.where(short, rng.uniform(1.5, 3.0, count), rng.uniform(3.0, 4.0, count))
    return _whole(10.0**exponent * _MS_PER_MINUTE)


def uniform_durations(count: int, low_ms: int, high_ms: int, seed: int) -> list[int]:
    return _whole(generator(seed, Source.DURATIONS).uniform(low_ms, high_ms, count))


def log_uniform_durations(count: int, low_ms: int, high_ms: int, seed: int) -> list[int]:
    """Uniform in their logarithm: as many jobs from 1 to 2 hours as from 2 to 4."""
    exponent = generator(seed, Source.DURATIONS).uniform(np.log(low_ms), np.log(high_ms), count)
    return _whole(np.exp(exponent))


def _whole(values_ms: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[int]:
    return [int(value) for value in np.rint(values_ms)]
