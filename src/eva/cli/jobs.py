"""`eva queue`, `status`, `logs`, `cancel`: jobs looked at and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eva.cli.completing import complete_job, complete_job_or_task, complete_live_job
from eva.cli.connecting import HomeOption, client_for
from eva.cli.console import JsonOption, print_json, print_next, print_note
from eva.cli.showing import View, WatchOption, show
from eva.cli.submitting import print_lines, summary
from eva.cli.tables import table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from eva.master.client import Client
    from eva.master.words import JobOut

ENDED_BADLY_EXIT_CODE = 1
_COLUMNS = ("job", "state", "age", "ran", "tasks", "on", "steps/s", "moves", "why")
_TASK_COLUMNS = ("task", "state", "epoch", "on", "bound for", "steps/s", "why")


def queue(
    home: HomeOption = None,
    all_: Annotated[bool, typer.Option("--all", "-a", help="Also jobs that are over.")] = False,
    watch: WatchOption = False,
    json: JsonOption = False,
) -> None:
    """List the jobs, and why each waits."""
    with client_for(home) as client:

        def look() -> View:
            jobs, now_ms = client.jobs(ended=all_), client.cluster().now_ms
            return View([job.model_dump() for job in jobs], lambda: job_table(jobs, now_ms))

        show(look, watch=watch, json=json)


def job_table(jobs: list[JobOut], now_ms: int) -> Table | str:
    if not jobs:
        return "No live jobs. Next: eva submit JOB.yaml, or eva queue --all"
    return table(_COLUMNS, (_job_row(job, now_ms) for job in jobs))


def _job_row(job: JobOut, now_ms: int) -> list[str]:
    from eva.model.units import format_duration

    end_ms = job.ended_ms or now_ms
    ran = "" if job.first_start_ms is None else format_duration(end_ms - job.first_start_ms)
    places = sorted({task.instance for task in job.tasks if task.instance})
    speeds = [task.iterations_per_s for task in job.tasks if task.iterations_per_s]
    return [
        job.id,
        job.state,
        format_duration(end_ms - job.submitted_ms),
        ran,
        str(job.nodes or ""),
        " ".join(places),
        f"{min(speeds):.1f}" if speeds else "",
        str(job.migrations or ""),
        "" if job.reason == job.state else job.reason,
    ]


def status(
    job: Annotated[
        str,
        typer.Argument(metavar="JOB", help="As `eva queue` lists it.", autocompletion=complete_job),
    ],
    home: HomeOption = None,
    watch: WatchOption = False,
    json: JsonOption = False,
) -> None:
    """Show one job and its tasks, and why it waits.

    Exit code 1 where it failed or was cancelled.
    """
    with client_for(home) as client:
        found = client.job(job)  # the last that was shown

        def look() -> View:
            nonlocal found
            found = client.job(job)
            return View(found.model_dump(), lambda: _status_view(found))

        show(look, watch=watch, json=json)
    if not json:
        log = f"eva logs {job}" if found.over else f"eva logs -f {job}"
        print_next(log, *([] if found.over else [f"eva explain {job}"]))
    if found.state in {"failed", "cancelled"}:
        raise typer.Exit(ENDED_BADLY_EXIT_CODE)


def _status_view(job: JobOut) -> RenderableType:
    from rich.console import Group

    if not job.tasks:
        return summary(job)
    rows = [
        [
            task.id,
            task.state,
            str(task.epoch or ""),
            task.instance or "",
            "" if task.bound_for == task.instance else task.bound_for or "",
            f"{task.iterations_per_s:.1f}" if task.iterations_per_s else "",
            task.reason,
        ]
        for task in job.tasks
    ]
    facts = [f"Each task needs {job.demand}; workload {job.workload}."]
    if job.priority:
        facts.append(f"Priority {job.priority}.")
    return Group(summary(job), " ".join(facts), table(_TASK_COLUMNS, rows))


def logs(
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB[.TASK]",
            help="A job, or one of its tasks: train-7 or train-7.0.",
            autocompletion=complete_job_or_task,
        ),
    ],
    home: HomeOption = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job is over.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Print the output of a job, over all its moves.

    Ctrl-C stops the printing, not the job.
    """
    with client_for(home) as client:
        owner = _owner(client, job)
        try:
            if json:
                for line in client.logs(job, follow=follow):
                    typer.echo(line.model_dump_json())
            else:
                several = owner.id == job and (owner.nodes or 1) > 1
                print_lines(client.logs(job, follow=follow), several=several)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        if follow and not json:
            print_note(summary(client.job(owner.id)))


def _owner(client: Client, name: str) -> JobOut:
    """The job of this name, or of the task of this name."""
    from eva.master.client import RefusedError

    try:
        return client.job(name)
    except RefusedError:
        owner, _, index = name.rpartition(".")
        if not (owner and index.isdecimal()):
            raise
        return client.job(owner)


def cancel(
    jobs: Annotated[
        list[str],
        typer.Argument(metavar="JOB...", help="One or more.", autocompletion=complete_live_job),
    ],
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
        over = " already" if job.over else ""
        typer.echo(f"{job.id} is {job.state}{over}.")
    if any(not job.over for job in cancelled):
        print_next(f"eva status {next(job.id for job in cancelled if not job.over)}")
