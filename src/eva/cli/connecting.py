"""How commands reach the master: `--home`, $EVA_HOME, or $EVA_URL with $EVA_TOKEN."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from eva.master.client import Client

HomeOption = Annotated[
    str | None,
    typer.Option(
        "--home",
        metavar="DIR",
        help="Where the cluster keeps everything. Default: $EVA_HOME, else ~/.eva.",
    ),
]
WatchOption = Annotated[
    bool, typer.Option("--watch", "-w", help="Show it again every second, until Ctrl-C.")
]
_WATCH_S = 1.0


def home_folder(given: str | None) -> Path:
    return Path(given or os.environ.get("EVA_HOME") or Path.home() / ".eva").expanduser()


def client_for(home: str | None) -> Client:
    from eva.master.client import Client, Connection

    url = os.environ.get("EVA_URL")
    if url and home is None:
        certificate = os.environ.get("EVA_CERTIFICATE") or None
        token = os.environ.get("EVA_TOKEN", "")
        return Client(Connection(url.rstrip("/"), token, certificate))
    return Client(Connection.read(home_folder(home)))


def show(render: Callable[[], RenderableType], *, watch: bool) -> None:
    """Once, or again and again on the same spot of the screen."""
    from eva.cli.console import stdout

    console = stdout()
    if not watch:
        console.print(render())
        return
    from rich.live import Live

    with Live(render(), console=console, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(_WATCH_S)
                live.update(render(), refresh=True)
        except KeyboardInterrupt:
            return
