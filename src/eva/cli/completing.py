"""What the shell completes: names that the cluster knows, asked of its master.

A cluster that does not answer completes nothing and says nothing: this runs between two keystrokes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import typer

from eva.cli.connecting import client_for

if TYPE_CHECKING:
    from eva.master.client import Client
    from eva.master.words import JobOut


def complete_live_job(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, incomplete, lambda client: (job.id for job in client.jobs()))


def complete_job(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, incomplete, lambda client: (job.id for job in client.jobs(ended=True)))


def complete_job_or_task(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, incomplete, lambda client: _with_tasks(client.jobs(ended=True)))


def complete_subject(context: typer.Context, incomplete: str) -> list[str]:
    """Whatever `eva explain` explains."""

    def subjects(client: Client) -> Iterable[str]:
        yield from _with_tasks(client.jobs())
        yield from (instance.id for instance in client.instances())

    return _names(context, incomplete, subjects)


def complete_token(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, incomplete, lambda client: (each.name for each in client.tokens()))


def _names(
    context: typer.Context, incomplete: str, ask: Callable[[Client], Iterable[str]]
) -> list[str]:
    from eva.model.errors import EvaError

    try:
        with client_for(context.params.get("home")) as client:
            return [name for name in ask(client) if name.startswith(incomplete)]
    except EvaError:
        return []


def _with_tasks(jobs: Iterable[JobOut]) -> Iterable[str]:
    for job in jobs:
        yield job.id
        if len(job.tasks) > 1:
            yield from (task.id for task in job.tasks)
