"""The entry point `eva`: the list of commands, and the one place where errors become exit codes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from eva import __version__
from eva.cli import (
    aws,
    catalog,
    cluster,
    demo,
    doctoring,
    experiment,
    jobs,
    serving,
    simulate,
    solve,
    submitting,
    trace,
    working,
)
from eva.cli.console import print_error
from eva.cli.extras import what_to_install
from eva.cli.working import HANDED_ON
from eva.model.errors import EvaError, OperatorError

app = typer.Typer(
    name="eva",
    help="Rents the cheapest set of cloud instances that hosts your batch jobs.",
    epilog="Begin with `eva demo`, or with `eva up` and `eva submit JOB.yaml`. Another machine's "
    "cluster is reached with EVA_URL, EVA_TOKEN and EVA_CERTIFICATE. Exit codes: 0 done, 1 it did "
    "not work, 2 wrong input or usage, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: reflowed to the width there is, and twice as fast
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("solve", short_help="Find the cheapest instances for a file of tasks.")(solve.solve)
app.command("simulate", short_help="Price policies on a trace of jobs.")(simulate.simulate)
app.command("demo")(demo.demo)
app.command("up")(serving.up)
app.command("down")(serving.down)
app.command("serve")(serving.serve)
app.command("worker", context_settings=HANDED_ON)(working.worker)
app.command("submit")(submitting.submit)
app.command("exec")(submitting.exec_)
app.command("queue")(jobs.queue)
app.command("status")(jobs.status)
app.command("logs")(jobs.logs)
app.command("cancel")(jobs.cancel)
app.command("instances")(cluster.instances)
app.command("explain")(cluster.explain)
app.command("top")(cluster.top)
app.command("doctor")(doctoring.doctor)
app.add_typer(cluster.tokens, name="token")
app.add_typer(aws.app, name="aws")
app.add_typer(catalog.app, name="catalog")
app.add_typer(experiment.app, name="experiment")
app.add_typer(trace.app, name="trace")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"eva {__version__}")
        raise typer.Exit


@app.callback()
def _eva(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Rents the cheapest set of cloud instances that hosts your batch jobs."""


def main() -> None:
    try:
        app()
    except EvaError as error:
        print_error(error)
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        wanted = what_to_install(error)
        if wanted is None:
            raise
        print_error(wanted)
        sys.exit(wanted.exit_code)
    except (
        OSError
    ) as error:  # a full disk, a folder that is not ours: nothing that a trace explains
        place = "" if error.filename is None else f"{error.filename}: "
        print_error(OperatorError(f"{place}{error.strerror or error}"))
        sys.exit(OperatorError.exit_code)
