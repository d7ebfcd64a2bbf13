"""How commands speak: tables and text on standard output, complaints on standard error.

Colour only on a terminal, and never with NO_COLOR set; rich sees to both. JSON is printed plainly,
so that it can be piped.

Terminals obey what they are sent: they take titles, clipboards and answers to questions from it.
What tasks print and why they failed was written by strangers, so control characters are shown
instead of sent (`visible`), and of a task's output colours and cursor moves alone go through
(`tamed`).
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from eva.model.errors import EvaError, InputError

if TYPE_CHECKING:  # importing rich takes as long as all the rest of `eva --help`
    from rich.console import Console

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]

_NOT_A_TERMINAL_WIDTH = 120
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_HARMLESS = r"\x1b\[[0-9;:]*[mA-K]|[\r\b]"  # colours, cursor, erasing: progress bars
_NOT_HARMLESS = re.compile(f"(?P<kept>{_HARMLESS})|{_CONTROL.pattern}")


def visible(text: str) -> str:
    """Text of others, with what a terminal would obey spelled out."""
    return _CONTROL.sub(lambda found: _spelled(found[0]), text)


def tamed(line: str) -> str:
    """A line of a task's output, fit for a terminal."""
    return _NOT_HARMLESS.sub(lambda found: found["kept"] or _spelled(found[0]), line)


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode()


def stdout() -> Console:
    from rich.console import Console

    fixed = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = None if fixed else _NOT_A_TERMINAL_WIDTH
    return Console(highlight=False, width=width, emoji=False)


def stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def print_note(message: str) -> None:
    from rich.text import Text

    stderr().print(Text("note: ", style="yellow"), Text(visible(message)), sep="")


def print_next(*commands: str) -> None:
    """What somebody may want to do now; beside the answer, so that it can be piped without."""
    typer.echo(f"Next: {', or '.join(commands)}", err=True)


def print_error(error: EvaError) -> None:
    """One line per problem, so that editors can jump to `file:line`."""
    from rich.text import Text

    problems = [str(p) for p in error.problems] if isinstance(error, InputError) else [str(error)]
    console = stderr()
    for problem in problems:
        console.print(Text("error: ", style="bold red"), Text(visible(problem)), sep="")
    if len(problems) > 1:
        console.print(f"{len(problems)} problems; nothing was done")


def confirm(question: str, *, default: bool = False) -> None:
    """Go on only if somebody says yes. Where nobody can, a script has to have said so by itself."""
    try:
        agreed = typer.confirm(question, default=default, err=True)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        raise InputError.single(
            "standard input",
            "is no terminal, so nobody can be asked and nothing was done: say -y to mean it",
        ) from None
    if not agreed:
        raise typer.Abort
