"""The collector of complaints: readers add to it and go on, and raise once at the end."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from eva.model.errors import InputError, Problem


class Problems:
    """Everything that is wrong with one file, in the order of its lines."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.unreadable_columns: frozenset[str] = frozenset()  # complained about once, not by row
        self._found: list[tuple[int, Problem]] = []

    def add(self, line: int, message: str, field: str | None = None) -> None:
        """Complain about `field` on `line`; line 0 is the file as a whole."""
        where = self.source if line == 0 else f"{self.source}:{line}"
        self._found.append(
            (line, Problem(where if field is None else f"{where}: {field}", message))
        )

    def __len__(self) -> int:
        return len(self._found)

    def raise_if_any(self) -> None:
        if self._found:
            raise InputError([problem for _, problem in sorted(self._found, key=lambda it: it[0])])

    def fail(self, line: int, message: str, field: str | None = None) -> InputError:
        """The error to raise where reading cannot go on: this complaint and all earlier ones."""
        self.add(line, message, field)
        return InputError([problem for _, problem in sorted(self._found, key=lambda it: it[0])])


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` where something known is close, else nothing."""
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), names, n=1)
    return f"; did you mean {names[close[0]]!r}?" if close else ""
