"""`eva demo`: the paper's small experiment in seconds, on this machine, with everything real.

A two-task job and a GPU job share one 4-GPU instance, a CPU job gets a small one of its own. When
the GPU job is done, the two tasks move by checkpoint to two cheaper instances and finish there.
What is shown in the end is read off the cluster: the bill, what one instance per task would have
cost by the simulator's word, every decision with its reason, and the steps as the tasks wrote them.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from eva.master.client import Client
    from eva.master.options import ServeOptions
    from eva.master.words import JobOut

ROUND_S = 2.0
DELAY_SCALE = 1 / 60  # a minute of the paper's instances is a second here
_WITHIN_S = 110.0
_LOOK_EVERY_S = 0.5
PACE = 10.0  # steps per second


@dataclass(frozen=True, slots=True)
class DemoJob:
    """One job of the experiment. Demands as in the paper; `steps` make it last seconds."""

    name: str
    nodes: int
    resources: str
    steps: int

    @property
    def text(self) -> str:
        return self.text_for(sys.executable)

    def text_for(self, python: str) -> str:
        """The job's file, for machines where Eva is installed for this `python`."""
        command = f"{python} -m eva.cli.demo_job {self.steps} {PACE:g}"
        return (
            f"name: {self.name}\nnum_nodes: {self.nodes}\nrun: exec {command}\n"
            f"resources: {self.resources}\nthroughput: {PACE * 0.9:g}\n"
            "progress: {window: 10s}\ncheckpoint: {grace: 20s}\n"
        )


JOBS = (
    DemoJob("two-task", 2, "{gpus: 1, cpus: 4, memory: 24GB}", 500),
    DemoJob("gpu", 1, "{gpus: 2, cpus: 8, memory: 60GB}", 300),
    DemoJob("cpu", 1, "{gpus: 0, cpus: 4, memory: 8GB}", 400),
)


def demo(
    home: Annotated[
        str | None, typer.Option("--home", help="Keep everything here instead of in /tmp.")
    ] = None,
) -> None:
    """Watch three jobs packed, moved and finished, in a minute.

    The paper's small experiment in seconds, on this machine: a two-task job and a GPU job share a
    4-GPU instance, a CPU job has a small one, and when the GPU job ends the two tasks move to two
    cheaper instances by checkpoint. Exit code 0 if all of that was seen.
    """
    from eva.cli.serving import start_in_background, wait_until_gone
    from eva.master.options import ServeOptions

    _require_iterator()
    folder = Path(home) if home else Path(tempfile.mkdtemp(prefix="eva-demo-"))
    options = ServeOptions(
        folder, port=0, round_s=ROUND_S, delay_scale=DELAY_SCALE, dead_man_s=30.0
    )
    typer.echo(f"Starting a cluster in {folder}: catalog paper, a round every {ROUND_S:g} s.\n")
    start_in_background(options)
    try:
        ok = _experiment(folder, options)
    finally:
        _end(folder)
        wait_until_gone(folder)
        if home is None:
            shutil.rmtree(folder, ignore_errors=True)
    raise typer.Exit(0 if ok else 1)


def _require_iterator() -> None:
    import importlib.util

    from eva.model.errors import OperatorError

    if importlib.util.find_spec("eva_iterator") is None:
        raise OperatorError("the demo's jobs use EvaIterator: pip install eva-iterator")


def _end(folder: Path) -> None:
    from eva.cli.connecting import client_for

    with client_for(str(folder)) as client:
        client.shut_down(cancel=True)


def _experiment(folder: Path, options: ServeOptions) -> bool:
    """Whether all that was promised was seen."""
    from eva.cli.connecting import client_for
    from eva.cli.demo_report import report
    from eva.master.words import Submission

    with client_for(str(folder)) as client:
        ids = []
        for job in JOBS:
            submitted = client.submit(Submission(job_file=job.text, source=f"{job.name}.yaml"))
            ids.append(submitted.job)
        ended = _watch(client, ids)
        return report(client, folder, options, ended)


def _watch(client: Client, ids: list[str]) -> list[JobOut]:
    """Show what happens until the jobs are over and no instance is paid for any more."""
    from eva.cli.cluster import overview
    from eva.cli.console import stdout
    from eva.model.errors import TryAgainError

    console = stdout()
    deadline = time.monotonic() + _WITHIN_S
    seen = 0

    def over() -> bool:
        if time.monotonic() > deadline:
            raise TryAgainError(f"the demo was not over within {_WITHIN_S:.0f} s")
        return all(client.job(name).over for name in ids) and not client.instances()

    if sys.stdout.isatty():
        from rich.live import Live

        first = overview(client).draw()
        with Live(first, console=console, auto_refresh=False, screen=True) as live:
            while not over():
                live.update(overview(client).draw(), refresh=True)
                time.sleep(_LOOK_EVERY_S)
    while True:
        ended = over()
        for event in client.events(seen):
            seen = event.number
            console.print(f"{_seconds(event.time_ms, client)}  {event.text}", markup=False)
        if ended:
            return [client.job(name) for name in ids]
        time.sleep(_LOOK_EVERY_S)


def _seconds(time_ms: int, client: Client) -> str:
    first = client.job(f"{JOBS[0].name}-1").submitted_ms
    return f"{(time_ms - first) / 1000:6.1f} s"
