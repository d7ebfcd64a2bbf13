"""What `eva demo` prints in the end, and whether it showed what it promises to show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eva.cli.console import stdout
from eva.cli.demo import JOBS, PACE

if TYPE_CHECKING:
    from eva.master.client import Client
    from eva.master.options import ServeOptions
    from eva.master.words import DecisionOut, InstanceOut, JobOut


def report(client: Client, folder: Path, options: ServeOptions, ended: list[JobOut]) -> bool:
    from eva.cli.cluster import instance_table
    from eva.cli.jobs import job_table
    from eva.model.units import format_usd

    cluster, instances = client.cluster(), client.instances(ended=True)
    decisions = client.decisions(changes=True)
    console = stdout()
    typer.echo("\nDecisions that changed something:")
    for decision in decisions:
        before, after = decision.hourly_micros_before, decision.hourly_micros_after
        price = f"from {format_usd(before, 4)}/h to {format_usd(after, 4)}/h"
        typer.echo(f"  round {decision.round}, {price}: {_actions(decision)}\n    {decision.text}")
    typer.echo("\nInstances and what was paid for them:")
    console.print(instance_table(instances))
    typer.echo("\nJobs:")
    console.print(job_table(ended, cluster.now_ms))
    apart = no_packing_micros(options, ended)
    share = 100 * cluster.bill_micros / apart
    typer.echo(
        f"\nPaid {format_usd(cluster.bill_micros, 4)}. No-Packing, one instance per task, would "
        f"have paid {format_usd(apart, 4)} (simulated with the same jobs and delays): "
        f"{share:.0f}% of it."
    )
    findings = _findings(folder, instances, ended, cluster.bill_micros)
    typer.echo()
    for what, ok in findings:
        typer.echo(f"{'ok' if ok else 'NOT SO'}: {what}")
    return all(ok for _, ok in findings)


def _actions(decision: DecisionOut) -> str:
    parts = [f"launch {name} ({kind})" for name, kind in decision.launched]
    if decision.moved:
        parts.append(f"move {', '.join(decision.moved)}")
    if decision.started:
        parts.append(f"start {', '.join(decision.started)}")
    if decision.terminated:
        parts.append(f"terminate {', '.join(decision.terminated)}")
    return "; ".join(parts)


def _findings(
    folder: Path, instances: list[InstanceOut], ended: list[JobOut], bill_micros: int
) -> list[tuple[str, bool]]:
    from eva.model.units import cost_micros

    types = sorted(each.type for each in instances)
    uptime = sum(cost_micros(each.hourly_micros, each.uptime_ms) for each in instances)
    moved = next(job for job in ended if job.name == JOBS[0].name)
    findings = [
        ("every job finished", all(job.state == "finished" for job in ended)),
        ("one 4-GPU instance hosted the two-task job and the GPU job", "p3.8xlarge" in types),
        ("the CPU job had a small CPU instance", any(kind.startswith("c7i") for kind in types)),
        ("the two tasks moved to two 1-GPU instances", types.count("p3.2xlarge") == 2),
        ("both tasks migrated by checkpoint, once", moved.migrations == 2),
        ("the bill is uptime x price", uptime == bill_micros),
        ("no instance is left", all(each.ended_ms is not None for each in instances)),
    ]
    for job in JOBS:
        for rank in range(job.nodes):
            steps = _steps(folder, job.name, rank)
            exact = steps == list(range(1, job.steps + 1))
            what = f"{job.name}, task {rank}: {job.steps} steps, none lost and none done twice"
            findings.append((what, exact))
    return findings


def _steps(folder: Path, name: str, rank: int) -> list[int]:
    """The steps as the task itself wrote them down, over all its moves."""
    books = [
        path
        for path in (folder / "storage").rglob(f"steps.{rank}")
        if any(part.startswith(f"{name}-") for part in path.parts)
    ]
    return [int(line) for path in books for line in path.read_text().split()]


def no_packing_micros(options: ServeOptions, ended: list[JobOut]) -> int:
    """The same jobs, arriving when they did, under No-Packing in the simulator."""
    from eva.inputs import job_file
    from eva.master.clouds import catalog_of
    from eva.master.definitions import job_spec
    from eva.model.ids import JobId
    from eva.model.jobs import TaskDelays
    from eva.scheduling.policies import policy
    from eva.simulator.driver import simulate
    from eva.simulator.settings import SimulationSettings
    from eva.traces.trace import TaskPhases, Trace, TraceJob

    round_ms = round(options.round_s * 1_000)
    began_ms = min(job.submitted_ms for job in ended) // round_ms * round_ms
    traced = []
    for wish, job in zip(JOBS, ended, strict=True):
        spec = job_spec(job_file.parse(wish.text, wish.name), None, TaskDelays())
        traced.append(
            TraceJob(
                JobId(job.id),
                job.submitted_ms - began_ms,
                round(wish.steps / PACE * 1_000),
                spec,
                wish.steps,
                PACE,
                (TaskPhases(),) * wish.nodes,
            )
        )
    settings = SimulationSettings(round_ms=round_ms)
    trace = Trace("demo", tuple(traced))
    return simulate(trace, policy("no-packing"), catalog_of(options), settings).total_cost_micros
