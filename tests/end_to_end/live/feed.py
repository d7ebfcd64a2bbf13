"""What soaks have in common: jobs that are brought and cancelled all the time, and judged at last.

A soak kills something again and again while it is fed. After all of it every accepted job has
finished exactly once, as its own book says, unless somebody cancelled it.
"""

from __future__ import annotations

import argparse
import enum
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from eva.cli.serving import LOG_FILE
from eva.master.client import Client
from eva.master.words import Submission
from eva.model.errors import EvaError
from tests.end_to_end.live.books import check_book, stepping_job
from tests.end_to_end.live.cluster import LiveCluster

_SHAPES = ((1, 1), (1, 2), (1, 0), (2, 1))  # tasks, and GPUs for each
_LARGE = (1, 8)  # fits beside nothing else
_STEPS = (40, 80, 160)
_LIVE_JOBS = 3
_SOON_S, _LATER_S = 0.3, 1.5  # after something was asked for, and otherwise

Say = Callable[[str], object]


@dataclass
class Accepted:
    """A job that the master said it has."""

    nodes: int
    steps: int
    cancelled: bool = False


class Wish(enum.Enum):
    """What is to come of the next thing that is asked for."""

    ANYTHING = "anything"
    LAUNCH = "an instance has to be launched"
    END = "an instance may have to go"


@dataclass
class Feed:
    """`cancelled` is how often a turn takes a job back instead of bringing one."""

    cluster: LiveCluster
    chance: random.Random
    cancelled: float = 0.05
    accepted: dict[str, Accepted] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)

    def ask(self, number: int, wish: Wish = Wish.ANYTHING) -> bool:
        """Keep some jobs going, and cancel one now and then; whether anything was asked for."""
        with self.cluster.client() as client:
            self.over |= {job.id for job in client.jobs(ended=True) if job.over}
            live = [job for job in self.accepted if job not in self.over]
            if live and self._takes_back(wish):
                job = self.chance.choice(live)
                client.cancel(job)
                self.accepted[job].cancelled = True
                return True
            if len(live) < _LIVE_JOBS or wish is Wish.LAUNCH:
                shape = _LARGE if wish is Wish.LAUNCH else self.chance.choice(_SHAPES)
                self._submit(client, number, shape)
                return True
        return False

    def _takes_back(self, wish: Wish) -> bool:
        if wish is Wish.ANYTHING:
            return self.chance.random() < self.cancelled
        return wish is Wish.END

    def _submit(self, client: Client, number: int, shape: tuple[int, int]) -> None:
        """Twice under one key, as a client does that heard no answer."""
        nodes, gpus = shape
        steps = self.chance.choice(_STEPS)
        text = stepping_job(f"soak-{number}", steps, gpus=gpus, nodes=nodes)
        asked = Submission(job_file=text, key=f"key-{number}")
        job = client.submit(asked).job
        assert client.submit(asked).job == job
        self.accepted[job] = Accepted(nodes, steps)

    def sleep(self, *, soon: bool) -> None:
        """Most happens shortly after something was asked for."""
        soon = soon or self.chance.random() < 0.3
        time.sleep(self.chance.uniform(0.0, _SOON_S if soon else _LATER_S))

    def finish(self, *, machines_lost: bool) -> None:
        """Let every job come to its end, and look at what each did."""
        self.cluster.until_over(list(self.accepted), within_s=60.0 + 6.0 * len(self.accepted))
        with self.cluster.client() as client:
            for job in self.accepted:
                self._check(client, job, machines_lost=machines_lost)

    def _check(self, client: Client, job: str, *, machines_lost: bool) -> None:
        seen, asked = client.job(job), self.accepted[job]
        if asked.cancelled and seen.state == "cancelled":
            return
        assert seen.state == "finished", seen
        books = self.cluster.books(job)
        assert len(books) == asked.nodes
        for text in books:
            check_book(text, asked.steps, machines_lost=machines_lost)


def run_soak(
    about: str, kills: int, soak: Callable[[Path, int, int, Say], Counter[str]], promise: str
) -> int:
    """A soak as a command; `kills` if nobody says how many. The exit code."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--kills", type=int, default=kills)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eva-soak-") as home:
        try:
            killed = soak(
                Path(home), options.kills, options.seed, lambda text: sys.stdout.write(f"{text}\n")
            )
        except EvaError as error:
            logs = "\n".join(path.read_text()[-4000:] for path in Path(home).rglob(LOG_FILE))
            sys.stdout.write(f"{logs}\n{error}\n")
            return 1
    sys.stdout.write(f"{dict(killed)} killed: {promise}\n")
    return 0
