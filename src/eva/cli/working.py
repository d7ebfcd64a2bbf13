"""`eva worker`: handed on as it stands, since machines start it and not people."""

from __future__ import annotations

import typer

# Everything, --help included, goes to the worker's own parser.
HANDED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def worker(context: typer.Context) -> None:
    """Run the agent of one instance; clouds start it at boot."""
    from eva.worker.main import main

    raise typer.Exit(main(context.args))
