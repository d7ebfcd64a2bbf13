"""Kill the master, its workers and their machines at random moments, again and again.

`python -m tests.end_to_end.live.kill_soak --kills 50 [--seed 1]`: so many kills of the master, and
as many of workers. After all of it every accepted job has finished exactly once, no process is
left, no instance that the master does not know of was ever made, and the bill is uptime x price.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from tests.end_to_end.live.cluster import LiveCluster
from tests.end_to_end.live.feed import Feed, Say, run_soak

_BEHIND = 3  # so many more masters than workers were killed: it lives until a worker is there
_WORKER_DIES, _MACHINE_DIES = 0.8, 0.05


@dataclass
class Soak:
    cluster: LiveCluster
    chance: random.Random
    say: Say
    feed: Feed = field(init=False)
    killed: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.feed = Feed(self.cluster, self.chance)

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
        asked = self.feed.ask(number)
        if self.killed["master"] - self._workers_killed > _BEHIND:
            self.cluster.until(lambda c: pids_of(self.cluster, "eva.worker") or not c.jobs())
        self.feed.sleep(soon=asked)
        if self.chance.random() < 0.5:
            self._kill_workers()  # and the master sees it happen, or comes back to it
            self.feed.sleep(soon=True)
            self.cluster.kill()
        else:
            self.cluster.kill()
            self._kill_workers()
        self.killed["master"] += 1
        self.cluster.start()
        self.say(f"killed {dict(self.killed)}: {len(self.feed.accepted)} jobs accepted so far")

    def settle(self) -> None:
        """Let everything come to its end, and look at what is there then."""
        self.feed.finish(machines_lost=self.killed["machine"] > 0)
        self._check_bill()

    # What is done

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


def pids_of(cluster: LiveCluster, module: str) -> list[int]:
    """The processes of this cluster that run `python -m module`.

    Not asked of `ps`: how much of a line that says is up to the terminal of whoever runs the tests.
    """
    home, found = os.fsencode(cluster.home), []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it has just ended
            words = (entry / "cmdline").read_bytes().split(b"\0")
            ours = any(home in word for word in words) and b"--sweep" not in words
            if ours and (b"-m", module.encode()) in pairwise(words):
                found.append(int(entry.name))
    return found


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


if __name__ == "__main__":
    sys.exit(run_soak(__doc__ or "", 50, soak, "every job finished exactly once, nothing is left"))
