"""What this package raises on purpose; each message names the thing, the value and the remedy."""

from __future__ import annotations

from typing import Sequence


class EvaIteratorError(Exception):
    """Base of everything that this package raises on purpose."""


class ProtocolError(EvaIteratorError):
    """A message that cannot be put on the wire, or a connection that cannot be taken."""


class CheckpointError(EvaIteratorError):
    """A checkpoint that is not complete, or cannot be made so, with all `problems` found."""

    def __init__(self, where: str, problems: Sequence[str]) -> None:
        self.where = where
        self.problems = tuple(problems)
        super().__init__(f"{where}: {'; '.join(self.problems)}")
