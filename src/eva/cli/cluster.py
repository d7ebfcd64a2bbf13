"""`eva instances`, `explain`, `top`, `token`, `doctor`: the cluster looked at."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from eva.cli.connecting import HomeOption, WatchOption, client_for, home_folder, show
from eva.cli.console import JsonOption, print_json
from eva.cli.jobs import job_table

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType
    from rich.table import Table

    from eva.master.client import Client
    from eva.master.words import InstanceOut

tokens = typer.Typer(help="Make, list and revoke tokens of the HTTP API.", no_args_is_help=True)
_EVENTS_SHOWN = 12


def instances(
    home: HomeOption = None,
    all_: Annotated[bool, typer.Option("--all", "-a", help="Also those that are gone.")] = False,
    watch: WatchOption = False,
    json: JsonOption = False,
) -> None:
    """List the instances and what each has cost."""
    with client_for(home) as client:
        if json:
            print_json([each.model_dump() for each in client.instances(ended=all_)])
            return
        show(lambda: instance_table(client.instances(ended=all_)), watch=watch)


def instance_table(found: list[InstanceOut]) -> Table | str:
    from rich.table import Table

    from eva.model.units import format_duration, format_usd

    if not found:
        return "No instances. They come with jobs: eva submit JOB.yaml"
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("instance", "type", "state", "$/hour", "worth $/h", "up", "cost", "tasks"):
        table.add_column(heading, overflow="fold")
    for each in found:
        table.add_row(
            each.id,
            each.type,
            each.state,
            format_usd(each.hourly_micros, 4),
            format_usd(each.worth_micros, 4) if each.worth_micros else "",
            format_duration(each.uptime_ms),
            format_usd(each.cost_micros, 6),
            " ".join(each.tasks),
        )
    return table


def explain(
    subject: Annotated[str, typer.Argument(metavar="JOB|INSTANCE")],
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Say why a job is where it is, or why an instance is worth its price."""
    with client_for(home) as client:
        found = client.explain(subject)
    if json:
        print_json(found.model_dump())
    else:
        typer.echo(found.text)


def top(home: HomeOption = None, json: JsonOption = False) -> None:
    """Show the whole cluster, live, until Ctrl-C."""
    with client_for(home) as client:
        if json:
            print_json(
                {
                    "cluster": client.cluster().model_dump(),
                    "jobs": [job.model_dump() for job in client.jobs()],
                    "instances": [each.model_dump() for each in client.instances()],
                }
            )
            return
        show(lambda: screen(client), watch=sys.stdout.isatty())


def screen(client: Client) -> RenderableType:
    """The cluster on one screen: money, instances, jobs, what happened last."""
    from rich.console import Group

    from eva.model.units import format_usd

    cluster = client.cluster()
    jobs = client.jobs()
    headline = (
        f"round {cluster.round} (every {cluster.period_ms / 1000:g} s) · {cluster.live_jobs} live "
        f"jobs, {cluster.ended_jobs} over · {cluster.instances} instances at "
        f"{format_usd(cluster.hourly_micros, 4)}/h · bill {format_usd(cluster.bill_micros, 4)} · "
        f"{cluster.migrations} migrations"
    )
    events = [event.text for event in client.events()[-_EVENTS_SHOWN:]]
    return Group(
        headline,
        "",
        instance_table(client.instances()),
        "",
        job_table(jobs, cluster.now_ms),
        "",
        *events,
    )


@tokens.command("list")
def list_tokens(home: HomeOption = None, json: JsonOption = False) -> None:
    """List the tokens by name."""
    with client_for(home) as client:
        found = client.tokens()
    if json:
        print_json([token.model_dump() for token in found])
        return
    for token in found:
        typer.echo(token.name)


@tokens.command("make")
def make_token(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Make a token and print it, this once."""
    with client_for(home) as client:
        made = client.make_token(name)
    if json:
        print_json(made.model_dump())
    else:
        typer.echo(made.token)


@tokens.command("revoke")
def revoke_token(
    name: Annotated[str, typer.Argument(metavar="NAME")], home: HomeOption = None
) -> None:
    """Make a token worthless from now on."""
    with client_for(home) as client:
        client.revoke_token(name)
    typer.echo(f"Revoked {name}.")


def doctor(home: HomeOption = None, json: JsonOption = False) -> None:
    """Check what Eva needs on this machine. Exit code 1 where something has to be mended."""
    folder = home_folder(home)
    findings = [check(folder, home) for check in _CHECKS]
    if json:
        print_json([{"what": what, "ok": ok, "say": say} for what, ok, say in findings])
    else:
        for what, ok, say in findings:
            typer.echo(f"{'ok  ' if ok else 'MEND'} {what}: {say}")
    if not all(ok for _, ok, _ in findings):
        raise typer.Exit(1)


_Finding = tuple[str, bool, str]


def _check_python(_folder: Path, _home: str | None) -> _Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return "Python", sys.version_info >= (3, 11), version


def _check_extra(_folder: Path, _home: str | None) -> _Finding:
    import importlib.util

    missing = [n for n in ("fastapi", "grpc", "uvicorn") if importlib.util.find_spec(n) is None]
    remedy = "pip install 'eva-scheduler[server]'"
    return "server packages", not missing, f"missing {missing}: {remedy}" if missing else "there"


def _check_home(folder: Path, _home: str | None) -> _Finding:
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free_gb = shutil.disk_usage(nearest).free / 1024**3
    return f"space for {folder}", free_gb > 1, f"{free_gb:.1f} GB free (1 GB at least)"


def _check_master(_folder: Path, home: str | None) -> _Finding:
    from eva.model.errors import EvaError

    try:
        with client_for(home) as client:
            cluster = client.cluster()
    except EvaError as error:
        return "master", False, str(error)
    return "master", True, f"answers, {cluster.live_jobs} live jobs, policy {cluster.policy}"


def _check_docker(_folder: Path, _home: str | None) -> _Finding:
    found = shutil.which("docker")
    return "Docker", True, found or "not found: only needed for jobs with an image or dockerfile"


_CHECKS: tuple[Callable[[Path, str | None], _Finding], ...] = (
    _check_python,
    _check_extra,
    _check_home,
    _check_master,
    _check_docker,
)
