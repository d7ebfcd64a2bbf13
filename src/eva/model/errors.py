"""One small tree of errors, sorted by what the reader can do about them.

Every message names the thing, the value and the remedy, so that nobody needs the source to act.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class EvaError(Exception):
    """Base of everything that Eva raises on purpose."""

    exit_code = 1


class InputError(EvaError):
    """Fix the input: it holds one or more problems, all of them listed at once."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[Problem, ...]]]:
        """Errors come home from other processes with their problems, not with their text."""
        return type(self), (self.problems,)

    @classmethod
    def single(cls, where: str, message: str) -> InputError:
        return cls([Problem(where, message)])


class TryAgainError(EvaError):
    """Try again: the same call may succeed later without any change."""


class CapacityError(EvaError):
    """Wait for capacity, or ask for something else."""


class OperatorError(EvaError):
    """Call an operator: permission, configuration or corruption that no retry will mend."""


class InvariantError(EvaError):
    """A promise that Eva makes to itself is broken: a bug, reported with the story so far."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an input, and where it stands."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"
