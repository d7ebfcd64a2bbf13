"""How commands reach the master: `--home`, $EVA_HOME, or $EVA_URL with $EVA_TOKEN."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from eva.master.client import Client

HomeOption = Annotated[
    str | None,
    typer.Option(
        "--home",
        metavar="DIR",
        help="Where the cluster keeps everything. Default: $EVA_HOME, else ~/.eva.",
    ),
]


def home_folder(given: str | None) -> Path:
    return Path(given or os.environ.get("EVA_HOME") or Path.home() / ".eva").expanduser()


def client_for(home: str | None) -> Client:
    from eva.master.client import Client, Connection
    from eva.model.errors import InputError

    url = os.environ.get("EVA_URL")
    if url and home is None:
        if not url.startswith(("http://", "https://")):
            raise InputError.single(
                "EVA_URL", f"{url!r} is no address; write one such as https://eva.example.org:7332"
            )
        certificate = os.environ.get("EVA_CERTIFICATE") or None
        token = os.environ.get("EVA_TOKEN", "")
        return Client(Connection(url.rstrip("/"), token, certificate))
    return Client(Connection.read(home_folder(home)))
