"""Many seeds: `python -m tests.simulation.soak --seeds 10000`.

Exits 1 and names the seeds if any promise is broken. With `--mutations` it searches instead for
the first seed that finds each planted bug, and exits 1 if one is not found within the seeds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from eva.model.errors import EvaError
from tests.simulation.chaos import Chaos
from tests.simulation.mutations import MUTATIONS, planted
from tests.simulation.scenarios import run, scenario

CHUNK = 100
# What a planted bug may end in: a broken promise, or an index that is not what it should be.
SYMPTOMS = (EvaError, KeyError, AssertionError, RuntimeError)


def broken_by(seed: int) -> str | None:
    """What is wrong under this seed, or None."""
    try:
        run(seed, fold_journal=seed % 5 == 0)
    except SYMPTOMS as error:
        return f"{type(error).__name__}: {error}"
    return None


def first_seed(seeds: int, mutation: str) -> int | None:
    """The first seed that finds the bug. Only seeds that no scheduling policy can shift count."""
    with planted(mutation):
        for seed in range(seeds):
            if isinstance(scenario(seed).policy, Chaos) and broken_by(seed) is not None:
                return seed
    return None


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def search(seeds: int, jobs: int) -> bool:
    with ProcessPoolExecutor(jobs) as pool:
        found = dict(zip(MUTATIONS, pool.map(partial(first_seed, seeds), MUTATIONS), strict=True))
    for mutation, seed in found.items():
        _say(f'    "{mutation}": {seed},')
    return None not in found.values()


def soak(seeds: Iterable[int], jobs: int) -> bool:
    fine = True
    with ProcessPoolExecutor(jobs) as pool:
        numbers = list(seeds)
        for seed, wrong in zip(numbers, pool.map(broken_by, numbers, chunksize=CHUNK), strict=True):
            if wrong is not None:
                fine = False
                _say(f"seed {seed}: {wrong}")
            if seed % 1_000 == 999:
                _say(f"{seed + 1 - numbers[0]} seeds done")
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="how many")
    parser.add_argument("--start", type=int, default=0, help="the first")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--mutations", action="store_true", help="search for planted bugs")
    given = parser.parse_args()
    if given.mutations:
        return 0 if search(given.seeds, given.jobs) else 1
    return 0 if soak(range(given.start, given.start + given.seeds), given.jobs) else 1


if __name__ == "__main__":
    sys.exit(main())
