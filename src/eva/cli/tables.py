"""Tables of the live cluster: narrow enough for 80 columns, with colour for states on a terminal.

A column that nobody has anything for is left out, so that a quiet cluster is shown in few words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from eva.cli.console import visible

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_STYLES = {
    "running": "green",
    "ready": "green",
    "finished": "green",
    "done": "green",
    "failed": "bold red",
    "cancelled": "dim",
    "gone": "dim",
}
_ON_ITS_WAY = "yellow"
_NUMBERS = frozenset(
    {"$/hour", "risk", "worth", "up", "cost", "age", "ran", "tasks", "steps/s", "moves", "failures"}
)
_MAY_WRAP = frozenset({"on", "holds", "why"})


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Names stay whole, numbers stand to the right; reasons and lists take the lines they need."""
    from rich.table import Table

    cells = [list(row) for row in rows]
    used = [n for n in range(len(headings)) if any(row[n] for row in cells)]
    made = Table(box=None, pad_edge=False, header_style="bold")
    for n in used:
        heading = headings[n]
        made.add_column(
            heading,
            justify="right" if heading in _NUMBERS else "left",
            no_wrap=heading not in _MAY_WRAP,
            overflow="fold",
        )
    for row in cells:
        made.add_row(*(_cell(headings[n], row[n]) for n in used))
    return made


def _cell(heading: str, text: str) -> Text:
    from rich.text import Text

    style = _STYLES.get(text, _ON_ITS_WAY) if heading == "state" else ""
    return Text(visible(text), style=style)
