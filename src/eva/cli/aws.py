"""`eva aws`: an account made ready for a cluster, looked through, and cleared again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from eva.cli.aws_audit import audit
from eva.cli.aws_options import (
    ClusterOption,
    ConfigOption,
    EndpointOption,
    RegionOption,
    target_of,
)
from eva.cli.aws_policies import policies
from eva.cli.connecting import HomeOption
from eva.cli.console import JsonOption, confirm, print_json, print_note, stderr

if TYPE_CHECKING:
    from eva.adapters.aws.account.destroy import Destroy
    from eva.adapters.aws.account.init import Init
    from eva.adapters.aws.account.plan import Plan
    from eva.adapters.aws.account.target import Target

app = typer.Typer(
    help="Make an AWS account ready for a cluster, look through it, clear it again.",
    no_args_is_help=True,
)
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the plan and do nothing.")]
_SIGNS = {"create": "+", "change": "~", "keep": "=", "remove": "-"}


@app.command("init")
def init(
    home: HomeOption = None,
    region: RegionOption = "",
    cluster: ClusterOption = "",
    image: Annotated[
        str,
        typer.Option(
            "--image",
            metavar="AMI",
            help="ami-..., an SSM parameter that holds one, or `latest` for the newest of the one "
            "in use. Default: as before, else the Deep Learning Base AMI (Ubuntu 24.04).",
        ),
    ] = "",
    subnet: Annotated[
        list[str] | None,
        typer.Option(
            "--subnet",
            metavar="ZONE=ID",
            help="Where instances go, once for each zone. Default: as before, else those of the "
            "default VPC.",
        ),
    ] = None,
    bucket: Annotated[
        str, typer.Option("--bucket", metavar="NAME", help="Default: eva-CLUSTER-ACCOUNT.")
    ] = "",
    instance_profile: Annotated[
        str,
        typer.Option(
            "--instance-profile",
            metavar="NAME",
            help="One that is there already, for workers; then no role is made for them.",
        ),
    ] = "",
    master_instance_profile: Annotated[
        str,
        typer.Option(
            "--master-instance-profile", metavar="NAME", help="The same, for a master on EC2."
        ),
    ] = "",
    no_software: Annotated[
        bool, typer.Option("--no-software", help="Eva is in the image: upload none.")
    ] = False,
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt",
            help="Take over what an init from another home made under this cluster's name.",
        ),
    ] = False,
    aws_config: ConfigOption = None,
    endpoint_url: EndpointOption = "",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Make what a cluster needs in an AWS account, or check and mend it.

    Shows a plan first. It makes two security groups (the workers' lets nobody in), a role and an
    instance profile each for workers and master, and a bucket, all tagged eva:cluster=NAME; finds
    the network and the image; uploads this Eva for instances to install; and writes aws.yaml for
    `eva up --cloud aws`. It may be run again at any time: what is as it should be is kept, and what
    lacks the tag is never touched. None of this is billed by itself, but for what is kept in the
    bucket. Undo it with `eva aws destroy`.
    """
    from eva.adapters.aws.account.init import plan_init
    from eva.adapters.aws.account.target import Wishes

    wishes = Wishes(
        cluster, region, endpoint_url, image, bucket, instance_profile, master_instance_profile,
        _subnets(subnet or []), software=not no_software,
    )  # fmt: skip
    target = target_of(home, aws_config, wishes)
    api = target.api()
    planned = plan_init(api, target)
    _show(planned.plan, _headline(planned), json=json)
    if planned.adopted and not (adopt or dry_run):
        _refuse_adoption(planned)
    if dry_run or not planned.plan.pending:
        _say_init(planned, done=not dry_run, json=json)
        return
    if not yes:
        confirm(f"Do this in account {planned.account.id}?")
    _carry_out(planned.plan, api)
    _say_init(planned, done=True, json=json)


@app.command("destroy")
def destroy(
    home: HomeOption = None,
    region: RegionOption = "",
    cluster: ClusterOption = "",
    end_instances: Annotated[
        bool,
        typer.Option(
            "--end-instances", help="End the cluster's instances first, if there are any."
        ),
    ] = False,
    delete_data: Annotated[
        bool, typer.Option("--delete-data", help="Delete what is in the bucket, unasked.")
    ] = False,
    aws_config: ConfigOption = None,
    endpoint_url: EndpointOption = "",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Remove everything that bears the cluster's tag from an AWS account.

    Shows a plan first. Refused while instances of the cluster are there. What jobs kept in the
    bucket is only deleted with --delete-data, or when you type the bucket's name. It may be run
    again at any time, and needs no aws.yaml if --cluster and --region are given.
    """
    from eva.adapters.aws.account.destroy import plan_destroy
    from eva.adapters.aws.account.target import Wishes

    target = target_of(home, aws_config, Wishes(cluster, region, endpoint_url))
    api = target.api()
    planned = plan_destroy(api, target, end_instances=end_instances)
    where = f"account {planned.account.id}, {target.region}, cluster {target.cluster}"
    _show(planned.plan, f"To be removed: {where}", json=json)
    pending = bool(planned.plan.pending)
    if dry_run or not pending:
        _say_destroy(planned, done=False, json=json)
        return
    _ask_to_destroy(planned, yes=yes, delete_data=delete_data)
    _carry_out(planned.plan, api)
    _say_destroy(planned, done=True, json=json)


app.command("audit")(audit)
app.command("policies")(policies)


def _subnets(given: list[str]) -> dict[str, str]:
    from eva.model.errors import InputError, Problem

    wrong = [word for word in given if not all(word.partition("="))]
    if wrong:
        raise InputError([Problem("--subnet", f"{word!r} is not ZONE=ID") for word in wrong])
    return {zone: subnet for zone, _, subnet in (word.partition("=") for word in given)}


# Saying


def _headline(planned: Init) -> str:
    target = planned.target
    return (
        f"Account {planned.account.id} ({planned.account.caller}), {target.region}, cluster "
        f"{target.cluster}"
    )


def _show(plan: Plan, headline: str, *, json: bool) -> None:
    """With --json, what is shown is what was done, at the end."""
    from rich.table import Table

    if json:
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(4):
        table.add_column(overflow="fold")
    for step in plan.steps:
        sign = f"{_SIGNS[step.action]} {step.action}"
        table.add_row(sign, step.kind, step.name, "; ".join(step.details))
    typer.echo(f"{headline}\n")
    from eva.cli.console import stdout

    stdout().print(table, markup=False)
    typer.echo("")


def _carry_out(plan: Plan, api: Any) -> None:
    console = stderr()
    for step in plan.carry_out(api):
        console.print(f"done: {step.action} {step.kind} {step.name}", markup=False)


def _refuse_adoption(planned: Init) -> None:
    from eva.model.errors import InputError

    there = ", ".join(planned.adopted)
    raise InputError.single(
        "--cluster",
        f"{planned.target.cluster!r} is in use in account {planned.account.id}: {there}. Two "
        "masters of one cluster end each other's instances: choose another name, or give --adopt "
        "if it is yours and no other master uses it",
    )


def _as_json(plan: Plan, target: Target, **more: object) -> dict[str, object]:
    steps = [step.as_json() for step in plan.steps]
    where = {"cluster": target.cluster, "region": target.region, "config": str(target.path)}
    return {**where, **more, "steps": steps}


def _say_init(planned: Init, *, done: bool, json: bool) -> None:
    if json:
        more = {"account": planned.account.id, "bucket": planned.bucket, "done": done}
        print_json(_as_json(planned.plan, planned.target, **more))
    elif not planned.plan.pending:
        typer.echo("Nothing to do: everything is as it should be. Next: eva up --cloud aws")
    elif done:
        typer.echo(f"Ready: {planned.target.path}. Next: eva up --cloud aws")
        print_note("IAM may need some seconds before a new role can be used everywhere")
    else:
        typer.echo("Nothing was done, as asked.")


def _ask_to_destroy(planned: Destroy, *, yes: bool, delete_data: bool) -> None:
    from eva.model.errors import InputError

    if not yes:
        confirm("Remove all of this?")
    data = planned.data
    if data is None or delete_data or not (data.objects or data.uploads):
        return
    if yes:
        raise InputError.single(
            "--yes",
            f"bucket {planned.bucket} is not empty ({data.told()}): give --delete-data as well",
        )
    question = f"Bucket {planned.bucket} goes {data.told()}. Type its name to delete them"
    if typer.prompt(question, default="", show_default=False, err=True) != planned.bucket:
        raise typer.Abort


def _say_destroy(planned: Destroy, *, done: bool, json: bool) -> None:
    if json:
        print_json(_as_json(planned.plan, planned.target, account=planned.account.id, done=done))
    elif not planned.plan.pending:
        typer.echo(f"Nothing bears the tag of the cluster {planned.target.cluster}.")
    elif done:
        typer.echo("All of it is gone. See for yourself: eva aws audit --all-clusters")
    else:
        typer.echo("Nothing was done, as asked.")
