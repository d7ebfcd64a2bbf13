"""`eva queue`, `status`, `logs`, `cancel`: jobs looked at and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eva.cli.connecting import HomeOption, WatchOption, client_for, show
from eva.cli.console import JsonOption, print_json

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from eva.master.client import Client
    from eva.master.words import JobOut

ENDED_BADLY_EXIT_CODE = 1


def complete_job(incomplete: str) -> list[str]:
    from eva.model.errors import EvaError

    try:
        with client_for(None) as client:
            return [job.id for job in client.jobs() if job.id.startswith(incomplete)]
    except EvaError:
        return []


JobArgument = Annotated[
    str, typer.Argument(metavar="JOB", help="As `eva queue` lists it.", autocompletion=complete_job)
]


def queue(
    home: HomeOption = None,
    all_: Annotated[bool, typer.Option("--all", "-a", help="Also jobs that are over.")] = False,
    watch: WatchOption = False,
    json: JsonOption = False,
) -> None:
    """List the jobs."""
    with client_for(home) as client:
        if json:
            print_json([job.model_dump() for job in client.jobs(ended=all_)])
            return
        show(lambda: job_table(client.jobs(ended=all_), client.cluster().now_ms), watch=watch)


def job_table(jobs: list[JobOut], now_ms: int) -> Table | str:
    from rich.table import Table

    from eva.model.units import format_duration

    if not jobs:
        return "No live jobs. Next: eva submit JOB.yaml, or eva queue --all"
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("job", "state", "age", "ran", "tasks", "on", "steps/s", "moves", "why"):
        table.add_column(heading, overflow="fold")
    for job in jobs:
        end_ms = job.ended_ms or now_ms
        ran = "" if job.first_start_ms is None else format_duration(end_ms - job.first_start_ms)
        places = sorted({task.instance for task in job.tasks if task.instance})
        speeds = [task.iterations_per_s for task in job.tasks if task.iterations_per_s]
        table.add_row(
            job.id,
            job.state,
            format_duration(end_ms - job.submitted_ms),
            ran,
            str(job.nodes or ""),
            " ".join(places),
            f"{min(speeds):.1f}" if speeds else "",
            str(job.migrations or ""),
            job.reason,
        )
    return table


def status(
    job: JobArgument,
    home: HomeOption = None,
    watch: WatchOption = False,
    json: JsonOption = False,
) -> None:
    """Show one job and its tasks. Exit code 1 where it failed or was cancelled."""
    with client_for(home) as client:
        found = client.job(job)
        if json:
            print_json(found.model_dump())
        else:
            show(lambda: _status_view(client.job(job)), watch=watch)
            if not found.over:
                typer.echo(f"Next: eva logs -f {job}, or eva explain {job}")
        if found.state in {"failed", "cancelled"}:
            raise typer.Exit(ENDED_BADLY_EXIT_CODE)


def _status_view(job: JobOut) -> RenderableType:
    from rich.console import Group
    from rich.table import Table

    from eva.cli.submitting import summary

    if not job.tasks:
        return summary(job)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("task", "state", "epoch", "on", "bound for", "steps/s", "why"):
        table.add_column(heading, overflow="fold")
    for task in job.tasks:
        speed = f"{task.iterations_per_s:.1f}" if task.iterations_per_s else ""
        bound = "" if task.bound_for == task.instance else task.bound_for or ""
        table.add_row(
            task.id, task.state, str(task.epoch), task.instance or "", bound, speed, task.reason
        )
    needs = f"each task needs {job.demand}; workload {job.workload}"
    return Group(f"{summary(job)}; {needs}", table)


def logs(
    job: Annotated[str, typer.Argument(metavar="JOB[.TASK]", autocompletion=complete_job)],
    home: HomeOption = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job is over.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Print the output of a job, over all its moves. Ctrl-C stops the printing, not the job."""
    with client_for(home) as client:
        several = not json and _has_siblings(client, job)
        try:
            for line in client.logs(job, follow=follow):
                if json:
                    typer.echo(line.model_dump_json())
                else:
                    typer.echo(f"[{line.task}] {line.text}" if several else line.text)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


def _has_siblings(client: Client, name: str) -> bool:
    """Whether lines need to say which task they are of."""
    from eva.master.client import RefusedError

    try:
        return len(client.job(name).tasks) > 1
    except RefusedError:  # the name of a task; the master answers for that itself
        return False


def cancel(
    jobs: Annotated[list[str], typer.Argument(metavar="JOB...", autocompletion=complete_job)],
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Stop jobs for good, without a checkpoint."""
    with client_for(home) as client:
        cancelled = [client.cancel(job) for job in jobs]
    if json:
        print_json([job.model_dump() for job in cancelled])
        return
    for job in cancelled:
        typer.echo(f"{job.id} is {job.state}.")
