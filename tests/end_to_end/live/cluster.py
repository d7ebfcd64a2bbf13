"""A whole cluster on this machine, as a user starts it: real processes, killed as such."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from eva.cli.serving import start_in_background, wait_until_gone
from eva.master.client import Client, Connection, NotRunningError
from eva.master.options import ServeOptions
from eva.master.words import Submission
from eva.model.units import cost_micros
from tests.support.warm import start_warm

# Steps are written down one by one; a copy that begins says which epoch it is.
COUNTING = """\
name: {name}
num_nodes: {nodes}
run: exec {python} -m eva.cli.demo_job {steps} {pace:g}
resources: {{gpus: {gpus}, cpus: 4, memory: 20GB}}
throughput: {speed:g}
progress: {{window: 5s}}
"""


def counting_job(name: str, steps: int, gpus: int = 1, nodes: int = 1, pace: float = 20.0) -> str:
    return COUNTING.format(
        name=name,
        nodes=nodes,
        python=sys.executable,
        steps=steps,
        pace=pace,
        gpus=gpus,
        speed=0.9 * pace,
    )


class MasterProcess(Protocol):
    @property
    def pid(self) -> int: ...

    def kill(self) -> None: ...

    def wait(self) -> int | None: ...


@dataclass
class LiveCluster:
    """One home folder, and the master that runs there now, if any.

    `warm` masters are forked from a process that has imported everything already.
    """

    home: Path
    warm: bool = False
    options: ServeOptions = field(init=False)
    process: MasterProcess | None = None

    def __post_init__(self) -> None:
        self.options = ServeOptions(
            self.home, port=0, round_s=1.0, delay_scale=0.005, dead_man_s=60.0
        )

    def start(self) -> None:
        start = start_warm if self.warm else start_in_background
        self.process = start(self.options)

    def kill(self) -> None:
        """`kill -9`, whatever the master is doing, and wait until it is reaped."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def client(self) -> Client:
        return Client(Connection.read(self.home))

    def submit(self, text: str, key: str | None = None) -> str:
        with self.client() as client:
            return client.submit(Submission(job_file=text, key=key)).job

    def until(self, condition: Callable[[Client], object], within_s: float = 60.0) -> None:
        """Ask the master until it is so."""
        deadline = time.monotonic() + within_s
        with self.client() as client:
            while not condition(client):
                assert time.monotonic() < deadline, client.jobs(ended=True)
                time.sleep(0.1)

    def until_over(self, jobs: list[str], within_s: float = 90.0) -> None:
        self.until(
            lambda client: all(client.job(job).over for job in jobs) and not client.instances(),
            within_s,
        )

    def down(self) -> None:
        try:
            with self.client() as client:
                client.shut_down(cancel=True)
        except NotRunningError:
            return
        wait_until_gone(self.home)
        if self.process is not None:
            self.process.wait()
            self.process = None

    def steps(self, job: str, rank: int = 0) -> list[int]:
        books = [
            path for path in (self.home / "storage").rglob(f"steps.{rank}") if job in path.parts
        ]
        return [int(line) for path in books for line in path.read_text().split()]

    def books(self, job: str) -> list[str]:
        """What the tasks of a job wrote down, where it is one of `jobs/stepping.py`."""
        return [
            path.read_text()
            for path in sorted((self.home / "storage").rglob("book.*"))
            if job in path.parts
        ]

    def machines(self) -> list[Path]:
        """What the local cloud knows of every instance that it ever made."""
        return sorted((self.home / "instances").glob("*/*/machine.json"))

    def starts(self, job: str) -> Counter[str]:
        """How often each epoch of each task began."""
        with self.client() as client:
            lines = [line.text for line in client.logs(job) if "on its epoch" in line.text]
        return Counter(" ".join(line.split()[:6]) for line in lines)

    def unpaid(self) -> int:
        """The difference between the bill and uptime x price."""
        with self.client() as client:
            instances = client.instances(ended=True)
            bill = client.cluster().bill_micros
        return bill - sum(cost_micros(each.hourly_micros, each.uptime_ms) for each in instances)

    def processes(self) -> list[str]:
        """Everything that still runs of this home, by its command lines and environments."""
        found = []
        mark = os.fsencode(self.home)
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                seen = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if mark in seen:
                found.append(seen[:200].decode(errors="replace").replace("\0", " "))
        return found

    def until_empty(self, within_s: float = 20.0) -> None:
        """No process of this cluster is left on the machine."""
        deadline = time.monotonic() + within_s
        while left := self.processes():
            assert time.monotonic() < deadline, left
            time.sleep(0.1)
