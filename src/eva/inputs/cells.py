"""The cells of one row as values: None where a cell is wrong, and the complaint is on record.

A reader takes all cells of a row first and gives up on the row only then, so that three mistakes
in one row make three complaints.
"""

from __future__ import annotations

import re
from decimal import Decimal

from eva.inputs.amounts import Unit, parse_amount, parse_rate
from eva.inputs.problems import Problems
from eva.inputs.tables import Row

_LONGEST_WORD = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Cells:
    """The cells of `row`, read by column.

    A column that is missing, or there twice, is one complaint about the table, not one for every
    row.
    """

    __slots__ = ("_problems", "_row")

    def __init__(self, row: Row, problems: Problems) -> None:
        self._row = row
        self._problems = problems

    def _lacks(self, column: str) -> bool:
        return column in self._problems.unreadable_columns

    def complain(self, message: str, column: str | None = None) -> None:
        self._problems.add(self._row.line, message, column)

    def word(self, column: str) -> str | None:
        """Text that must be there: a name."""
        text = self._row.text(column)
        if not text:
            if not self._lacks(column):
                self.complain("is missing", column)
        elif len(text) > _LONGEST_WORD:
            self.complain(f"is longer than {_LONGEST_WORD} characters", column)
        elif _CONTROL.search(text):
            self.complain(f"{text!r} holds a control character", column)
        else:
            return text
        return None

    def amount(self, column: str, unit: Unit) -> int | None:
        """An amount that must be there."""
        if self._lacks(column):
            return None
        try:
            return parse_amount(self._row.text(column), unit)
        except ValueError as error:
            self.complain(str(error), column)
            return None

    def optional_amount(self, column: str, unit: Unit) -> int | None:
        """An amount, or None where the cell is empty."""
        return self.amount(column, unit) if self._row.text(column) else None

    def optional_rate(self, column: str, *, most: Decimal, noun: str) -> float | None:
        """A positive measurement, or None where the cell is empty."""
        if not self._row.text(column):
            return None
        try:
            return parse_rate(self._row.text(column), most=most, noun=noun)
        except ValueError as error:
            self.complain(str(error), column)
            return None

    def flag(self, column: str) -> bool:
        """True or false; false where the cell is empty."""
        text = self._row.text(column)
        if text and text.lower() not in _FLAGS:
            self.complain(f"{text!r} is neither true nor false", column)
        return _FLAGS.get(text.lower(), False)
