"""`eva instances`, `explain`, `top`, `token`: the cluster looked at."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from eva.cli.completing import complete_subject, complete_token
from eva.cli.connecting import HomeOption, client_for
from eva.cli.console import JsonOption, print_json, stdout, visible
from eva.cli.jobs import job_table
from eva.cli.money import places_for
from eva.cli.showing import View, WatchOption, show
from eva.cli.tables import table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from eva.master.client import Client
    from eva.master.words import Cluster, EventOut, InstanceOut, JobOut

tokens = typer.Typer(help="Make, list and revoke tokens of the HTTP API.", no_args_is_help=True)
_FEWEST_EVENTS = 3
_COLUMNS = ("instance", "type", "state", "$/hour", "risk", "worth", "up", "cost", "holds")


def instances(
    home: HomeOption = None,
    all_: Annotated[bool, typer.Option("--all", "-a", help="Also those that are gone.")] = False,
    watch: WatchOption = False,
    json: JsonOption = False,
) -> None:
    """List the instances and what each has cost.

    `worth` is what its tasks are worth per hour there: their reservation prices, at the speed
    expected beside each other. An instance is kept while that is at least its price. On spot,
    `risk` is what interruptions are expected to cost per hour: decided by, but not billed.
    """
    with client_for(home) as client:

        def look() -> View:
            found = client.instances(ended=all_)
            return View([each.model_dump() for each in found], lambda: instance_table(found))

        show(look, watch=watch, json=json)


def instance_table(found: Sequence[InstanceOut]) -> Table | str:
    if not found:
        return "No instances. They come with jobs: eva submit JOB.yaml"
    places = places_for(each.hourly_micros for each in found)
    return table(_COLUMNS, (_instance_row(each, places) for each in found))


def _instance_row(each: InstanceOut, places: int) -> list[str]:
    from eva.model.units import format_duration, format_usd

    return [
        each.id,
        each.type,
        each.state,
        format_usd(each.hourly_micros, places),
        format_usd(each.risk_micros, 4) if each.risk_micros else "",
        format_usd(each.worth_micros, places) if each.worth_micros else "",
        format_duration(each.uptime_ms),
        format_usd(each.cost_micros, 4),
        " ".join(each.tasks),
    ]


def explain(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="JOB|INSTANCE",
            help="A job, a task or an instance.",
            autocompletion=complete_subject,
        ),
    ],
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Say why a job is where it is, or an instance worth its price.

    The sums are those of docs/decisions.md: reservation prices, expected throughput, and what the
    plans that were weighed would save and cost.
    """
    with client_for(home) as client:
        found = client.explain(subject)
    if json:
        print_json(found.model_dump())
    else:
        typer.echo(visible(found.text))


def top(home: HomeOption = None, json: JsonOption = False) -> None:
    """Show the whole cluster, live, until Ctrl-C."""
    with client_for(home) as client:
        live = sys.stdout.isatty() and not json
        show(lambda: overview(client), watch=live, json=json, whole_screen=live)


def overview(client: Client) -> View:
    """The cluster on one screen: money, instances, jobs, what happened last."""
    cluster, jobs, found = client.cluster(), client.jobs(), client.instances()
    events = client.events()
    data = {
        "cluster": cluster.model_dump(),
        "jobs": [job.model_dump() for job in jobs],
        "instances": [each.model_dump() for each in found],
    }
    return View(data, lambda: _screen(cluster, jobs, found, events))


def _screen(
    cluster: Cluster,
    jobs: list[JobOut],
    found: list[InstanceOut],
    events: list[EventOut],
) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    headline = headline_of(cluster)
    room = stdout().height - len(jobs) - len(found) - 2 * headline.count("\n") - 10
    last = events[-max(_FEWEST_EVENTS, room) :]
    return Group(
        Text(headline),
        "",
        instance_table(found),
        "",
        job_table(jobs, cluster.now_ms),
        "",
        *(Text(visible(told(event)), no_wrap=True, overflow="ellipsis") for event in last),
    )


def headline_of(cluster: Cluster) -> str:
    from eva.model.units import format_usd

    return (
        f"{format_usd(cluster.hourly_micros, 4)}/h for {cluster.instances} instances, "
        f"{format_usd(cluster.bill_micros, 4)} so far\n"
        f"{cluster.live_jobs} live jobs, {cluster.ended_jobs} over, "
        f"{cluster.migrations} migrations; round {cluster.round}, "
        f"one every {cluster.period_ms / 1000:g} s"
    )


def told(event: EventOut) -> str:
    import time

    clock = time.strftime("%H:%M:%S", time.localtime(event.time_ms / 1000))
    return f"{clock}  {event.text}"


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
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Make a token and print it, this once.

    Elsewhere, EVA_URL=https://... and EVA_TOKEN=... let its holder in; see `eva --help`.
    """
    with client_for(home) as client:
        made = client.make_token(name)
    if json:
        print_json(made.model_dump())
    else:
        typer.echo(made.token)


@tokens.command("revoke")
def revoke_token(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="As `eva token list` has it.", autocompletion=complete_token
        ),
    ],
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Make a token worthless from now on."""
    with client_for(home) as client:
        client.revoke_token(name)
    if json:
        print_json({"revoked": name})
    else:
        typer.echo(f"Revoked {name}.")
