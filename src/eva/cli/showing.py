"""Things shown once or watched: as tables for people, as JSON for programs.

While something is watched, a master that does not answer is said and asked again: it may only be
starting anew.
"""

from __future__ import annotations

import json as text_of
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from eva.cli.console import print_json, stdout
from eva.model.errors import TryAgainError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WatchOption = Annotated[
    bool,
    typer.Option(
        "--watch", "-w", help="Show it again every second, until Ctrl-C; with --json a line each."
    ),
]
_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class View:
    """The same for programs and for people."""

    data: object
    draw: Callable[[], RenderableType]


def show(look: Callable[[], View], *, watch: bool, json: bool, whole_screen: bool = False) -> None:
    """`look` asks the master; it is called again for every time that something is shown."""
    if not watch:
        view = look()
        if json:
            print_json(view.data)
        else:
            stdout().print(view.draw())
        return
    try:
        if json:
            _lines(look)
        else:
            _watch(look, stdout(), whole_screen=whole_screen)
    except KeyboardInterrupt:
        return


def _lines(look: Callable[[], View]) -> None:
    while True:
        typer.echo(text_of.dumps(look().data, ensure_ascii=False, allow_nan=False))
        time.sleep(_EVERY_S)


def _watch(look: Callable[[], View], console: Console, *, whole_screen: bool) -> None:
    view = look().draw()  # what is wrong from the start is an error, not something to watch
    if not console.is_terminal:
        while True:
            console.print(view)
            time.sleep(_EVERY_S)
            view = _again(look, view)
    from rich.live import Live

    with Live(view, console=console, auto_refresh=False, screen=whole_screen) as live:
        while True:
            time.sleep(_EVERY_S)
            view = _again(look, view)
            live.update(view, refresh=True)


def _again(look: Callable[[], View], before: RenderableType) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    try:
        return look().draw()
    except TryAgainError as error:
        if isinstance(before, Group) and isinstance(before.renderables[-1], Text):
            before = before.renderables[0]
        return Group(before, Text(f"{error} (trying again)", style="yellow"))
