"""Kill the master, its workers and their machines at random moments, again and again.

`python -m tests.end_to_end.live.kill_soak --kills 50 [--seed 1]`: so many kills of the master, and
as many of workers. After all of it every accepted job has finished exactly once, no process is
left, no instance that the master does not know of was ever made, and the bill is uptime x price.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from eva.model.errors import EvaError
from tests.end_to_end.live.books import check_book, stepping_job
from tests.end_to_end.live.cluster import LiveCluster

_SHAPES = ((1, 1), (1, 2), (1, 0), (2, 1))  # tasks, and GPUs for each
_STEPS = (40, 80, 160)
_LIVE_JOBS = 3
_SOON_S, _LATER_S = 0.3, 1.5  # after something was asked for, and otherwise
_BEHIND = 3  # so many more masters than workers were killed: it lives until a worker is there
_WORKER_DIES, _MACHINE_DIES, _JOB_CANCELLED = 0.8, 0.05, 0.05

Say = Callable[[str], object]


@dataclass
class Accepted:
    """A job that the master said it has."""

    nodes: int
    steps: int
    cancelled: bool = False


@dataclass
class Soak:
    cluster: LiveCluster
    chance: random.Random
    say: Say
    accepted: dict[str, Accepted] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)
    killed: Counter[str] = field(default_factory=Counter)

    def run(self, kills: int) -> None:
        """So many of masters, and as many of workers and machines."""
        turn = 0
        while min(self.killed["master"], self._workers_killed) < kills:
            self._turn(turn)
            turn += 1

    @property
    def _workers_killed(self) -> int:
        return self.killed["worker"] + self.killed["machine"]

    def _turn(self, number: int) -> None:
        """One life of the master, and perhaps the end of some workers'."""
        asked = self._ask(number)
        if self.killed["master"] - self._workers_killed > _BEHIND:
            self.cluster.until(lambda c: pids_of(self.cluster, "eva.worker") or not c.jobs())
        self._sleep(soon=asked)
        if self.chance.random() < 0.5:
            self._kill_workers()  # and the master sees it happen, or comes back to it
            self._sleep(soon=True)
            self.cluster.kill()
        else:
            self.cluster.kill()
            self._kill_workers()
        self.killed["master"] += 1
        self.cluster.start()
        self.say(f"killed {dict(self.killed)}: {len(self.accepted)} jobs accepted so far")

    def settle(self) -> None:
        """Let everything come to its end, and look at what is there then."""
        self.cluster.until_over(list(self.accepted), within_s=60.0 + 6.0 * len(self.accepted))
        for job, asked in self.accepted.items():
            self._check_job(job, asked)
        self._check_bill()

    # What is done

    def _ask(self, number: int) -> bool:
        """Keep some jobs going, and cancel one now and then; whether anything was asked for."""
        with self.cluster.client() as client:
            self.over |= {job.id for job in client.jobs(ended=True) if job.over}
        live = [job for job in self.accepted if job not in self.over]
        if live and self.chance.random() < _JOB_CANCELLED:
            job = self.chance.choice(live)
            with self.cluster.client() as client:
                client.cancel(job)
            self.accepted[job].cancelled = True
            return True
        if len(live) < _LIVE_JOBS:
            self._submit(number)
            return True
        return False

    def _submit(self, number: int) -> None:
        """Twice under one key, as a client does that heard no answer."""
        nodes, gpus = self.chance.choice(_SHAPES)
        steps = self.chance.choice(_STEPS)
        text = stepping_job(f"soak-{number}", steps, gpus=gpus, nodes=nodes)
        job = self.cluster.submit(text, f"key-{number}")
        assert self.cluster.submit(text, f"key-{number}") == job
        self.accepted[job] = Accepted(nodes, steps)

    def _sleep(self, *, soon: bool) -> None:
        """Most happens shortly after something was asked for."""
        soon = soon or self.chance.random() < 0.3
        time.sleep(self.chance.uniform(0.0, _SOON_S if soon else _LATER_S))

    def _kill_workers(self) -> None:
        """Workers, which their machines start again; or now and then a machine."""
        for kind, mark, rate in (
            ("worker", "eva.worker", _WORKER_DIES),
            ("machine", "eva.adapters.local", _MACHINE_DIES),
        ):
            for pid in pids_of(self.cluster, mark):
                if self.chance.random() < rate:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        self.killed[kind] += 1

    # What must hold

    def _check_job(self, job: str, asked: Accepted) -> None:
        with self.cluster.client() as client:
            seen = client.job(job)
        if asked.cancelled and seen.state == "cancelled":
            return
        assert seen.state == "finished", seen
        books = self.cluster.books(job)
        assert len(books) == asked.nodes
        for text in books:
            check_book(text, asked.steps, machines_lost=self.killed["machine"] > 0)

    def _check_bill(self) -> None:
        """Every machine that ever was is on it, from its first moment to its last."""
        with self.cluster.client() as client:
            billed = {each.id: each for each in client.instances(ended=True)}
        made = {path.parent.name: path.parent for path in self.cluster.machines()}
        assert set(made) <= set(billed), "an instance that the master does not know of"
        for name, each in billed.items():
            began, ended = (_mark(made.get(name), mark) for mark in ("launched", "terminated"))
            if began is None or ended is None:
                assert each.cost_micros == 0, each
            else:
                assert (each.acquired_ms, each.ended_ms) == (began, ended), each
        assert self.cluster.unpaid() == 0


def _mark(folder: Path | None, name: str) -> int | None:
    path = None if folder is None else folder / f"{name}.json"
    return None if path is None or not path.exists() else int(json.loads(path.read_text())["at_ms"])


def pids_of(cluster: LiveCluster, mark: str) -> list[int]:
    """The processes of a kind that belong to this cluster."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    return [
        int(line.split()[0])
        for line in listed.stdout.splitlines()
        if f"-m {mark} " in line and str(cluster.home) in line and "--sweep" not in line
    ]


def soak(home: Path, kills: int, seed: int, say: Say) -> Counter[str]:
    """How many of what were killed. Raises AssertionError where a promise was broken."""
    cluster = LiveCluster(home, warm=True)
    cluster.options = replace(cluster.options, round_s=0.5)
    soaking = Soak(cluster, random.Random(seed), say)
    cluster.start()
    try:
        soaking.run(kills)
        soaking.settle()
    finally:
        cluster.down()
    cluster.until_empty()
    return soaking.killed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eva-soak-") as home:
        try:
            killed = soak(
                Path(home), options.kills, options.seed, lambda text: sys.stdout.write(f"{text}\n")
            )
        except EvaError as error:
            sys.stdout.write(f"{(Path(home) / 'master.log').read_text()[-4000:]}\n{error}\n")
            return 1
    sys.stdout.write(f"{dict(killed)} killed: every job finished exactly once, nothing is left\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
