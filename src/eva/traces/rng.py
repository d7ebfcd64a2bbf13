"""Chance, one seeded generator per source of it.

Drawing more durations must not change the arrivals, so every source has a stream of its own under
the same seed. Streams depend on the numbers here: they are never renumbered.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Source(IntEnum):
    ARRIVALS = 1
    DURATIONS = 2
    WORKLOADS = 3
    DEMANDS = 4
    MULTI_GPU = 5
    MULTI_TASK = 6


def generator(seed: int, source: Source) -> np.random.Generator:
    return np.random.default_rng([seed, source.value])
