"""Kill the master at random moments of a running workload, again and again.

`python -m tests.end_to_end.live.kill_soak --kills 50 [--seed 1]`. After all of it every accepted
job has finished exactly once, no process is left, and the bill is uptime times price.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from eva.master.client import NotRunningError
from eva.model.errors import EvaError
from tests.end_to_end.live.cluster import LiveCluster, counting_job

LONGEST_LIFE_S = 2.5
_STEPS = 60


def soak(home: Path, kills: int, seed: int, say: Callable[[str], object]) -> None:
    """Raises AssertionError where a promise was broken."""
    chance = random.Random(seed)
    cluster = LiveCluster(home)
    accepted: dict[str, int] = {}  # job and its nodes
    try:
        cluster.start()
        for kill in range(kills):
            _submit_some(cluster, chance, kill, accepted)
            time.sleep(chance.uniform(0.0, LONGEST_LIFE_S))
            cluster.kill()
            cluster.start()
            say(f"kill {kill + 1} of {kills}: {len(accepted)} jobs accepted so far")
        cluster.until_over(list(accepted), within_s=60.0 + 5.0 * len(accepted))
        for job, nodes in accepted.items():
            with cluster.client() as client:
                assert client.job(job).state == "finished", client.job(job)
            for rank in range(nodes):
                assert cluster.steps(job, rank) == list(range(1, _STEPS + 1)), (job, rank)
            assert set(cluster.starts(job).values()) == {1}, cluster.starts(job)
        assert cluster.unpaid() == 0
    finally:
        cluster.down()
    cluster.until_empty()


def _submit_some(
    cluster: LiveCluster, chance: random.Random, kill: int, accepted: dict[str, int]
) -> None:
    """A job or two, submitted twice under one key as a client does that heard no answer."""
    for number in range(chance.randint(0, 2)):
        nodes, gpus = chance.choice(((1, 1), (2, 1), (1, 2), (1, 0)))
        text = counting_job(f"soak-{kill}-{number}", _STEPS, gpus, nodes)
        key = f"{kill}/{number}"
        try:
            job = cluster.submit(text, key)
            assert cluster.submit(text, key) == job
        except NotRunningError:
            continue
        accepted[job] = nodes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eva-soak-") as home:
        try:
            soak(
                Path(home), options.kills, options.seed, lambda text: sys.stdout.write(f"{text}\n")
            )
        except EvaError as error:
            sys.stdout.write(f"{(Path(home) / 'master.log').read_text()[-4000:]}\n{error}\n")
            return 1
    sys.stdout.write("every accepted job finished exactly once, and nothing is left\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
