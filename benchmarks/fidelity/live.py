"""The live side: a cluster as `eva up` starts it, the jobs submitted when the trace says so."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fidelity import task as synthetic
from benchmarks.fidelity.scenario import LONGEST_WINDOW_S, PACE, Scenario
from eva.cli.serving import start_in_background, wait_until_gone
from eva.master.client import Client, Connection
from eva.master.options import ServeOptions
from eva.master.words import InstanceOut, JobOut, Submission
from eva.model.errors import TryAgainError
from eva.model.resources import Resources
from eva.model.units import MIB_PER_GB, MILLIS_PER_CPU, MS_PER_SECOND
from eva.traces.interference import MEASURED, Interference
from eva.traces.trace import TraceJob
from eva.traces.workloads import kind_of

_LOOK_EVERY_S = 1.0
_PATIENCE = 2.0  # times what the trace would take one job after the other, at most


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What a cluster did. `began_ms` is the round at which the trace begins."""

    policy: str
    home: Path
    began_ms: int
    bill_micros: int
    jobs: tuple[JobOut, ...]
    instances: tuple[InstanceOut, ...]

    @property
    def board(self) -> Path:
        return self.home / "board"


def run_live(scenario: Scenario, policy: str, home: Path) -> LiveRun:
    """The whole trace, from an empty cluster to one that pays for nothing any more."""
    options = ServeOptions(
        home,
        port=0,
        catalog=scenario.catalog_name,
        policy=policy,
        round_s=scenario.round_ms / MS_PER_SECOND,
        delay_scale=1 / scenario.scale,
        dead_man_s=60.0,
    )
    board = home / "board"
    board.mkdir(parents=True)
    (board / "matrix.json").write_text(json.dumps(_rows(MEASURED)))
    with _cluster(options) as client:
        texts = [job_file(scenario, job, board) for job in scenario.trace.jobs]
        client.preview(Submission(job_file=texts[0]))  # so that the planning process is there
        began_ms, names = _submit(scenario, client, texts)
        _until_over(client, names, scenario)
        return LiveRun(
            policy,
            home,
            began_ms,
            client.cluster().bill_micros,
            tuple(client.job(name) for name in names),
            tuple(client.instances(ended=True)),
        )


@contextmanager
def _cluster(options: ServeOptions) -> Iterator[Client]:
    process = start_in_background(options)
    try:
        with Client(Connection.read(options.home)) as client:
            try:
                yield client
            finally:
                client.shut_down(cancel=True)
                wait_until_gone(options.home)
    finally:
        process.terminate()
        process.wait()


def _rows(truth: Interference) -> dict[str, dict[str, float]]:
    kinds = truth.workloads
    return {kind: {beside: truth.pair(kind, beside) for beside in kinds} for kind in kinds}


def job_file(scenario: Scenario, job: TraceJob, board: Path) -> str:
    """YAML, of which JSON is a part."""
    spec, phases = job.spec.tasks[0], job.phases[0]
    kind = kind_of(spec.workload)
    wish = {
        "board": str(board),
        "workload": kind,
        "steps": scenario.steps(job),
        "pace": PACE,
        "init_s": scenario.live_ms(phases.init_ms) / MS_PER_SECOND,
        "upload_s": scenario.live_ms(phases.upload_ms) / MS_PER_SECOND,
    }
    demand = spec.demand
    resources: dict[str, Any] = {} if demand.default is None else _amounts(demand.default)
    if demand.per_family:
        resources["per_family"] = {family: _amounts(amount) for family, amount in demand.per_family}
    window_s = min(LONGEST_WINDOW_S, max(1, 2 * scenario.round_ms // MS_PER_SECOND))
    return json.dumps(
        {
            "name": kind,
            "workload": kind,
            "num_nodes": len(job.phases),
            "run": [sys.executable, synthetic.__file__, json.dumps(wish)],
            "resources": resources,
            "throughput": PACE,
            "progress": {"window": f"{window_s}s"},
            "checkpoint": {"grace": "30s"},
        }
    )


def _amounts(amount: Resources) -> dict[str, object]:
    return {
        "gpus": amount.gpus,
        "cpus": amount.cpu_millis / MILLIS_PER_CPU,
        "memory": f"{amount.memory_mib // MIB_PER_GB}GB",
    }


def _submit(scenario: Scenario, client: Client, texts: list[str]) -> tuple[int, list[str]]:
    """Each job at its time, counted from a round of the cluster."""
    period_ms = scenario.round_ms
    began_ms = (synthetic.wall_ms() // period_ms + 1) * period_ms
    names = []
    for job, text in zip(scenario.trace.jobs, texts, strict=True):
        due_ms = began_ms + scenario.live_ms(job.arrival_ms)
        time.sleep(max(0.0, (due_ms - synthetic.wall_ms()) / MS_PER_SECOND))
        names.append(client.submit(Submission(job_file=text, source=f"job {job.id}")).job)
    return began_ms, names


def _until_over(client: Client, names: list[str], scenario: Scenario) -> None:
    work_ms = sum(scenario.live_ms(job.duration_ms) for job in scenario.trace.jobs)
    deadline = time.monotonic() + 60 + _PATIENCE * work_ms / MS_PER_SECOND
    while client.instances() or not all(client.job(name).over for name in names):
        if time.monotonic() > deadline:
            left = [name for name in names if not client.job(name).over]
            raise TryAgainError(f"{scenario.name}: not over in time, still there: {left}")
        time.sleep(_LOOK_EVERY_S)
