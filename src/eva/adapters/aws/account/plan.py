"""What is to be done to an account, resource by resource: shown first, then carried out.

A step that has no work is there to be seen. Work is mostly one call each, in an order in which
stopping after any of them leaves nothing that the next plan would not take up again.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from eva.adapters.aws.account.api import Api


class Action(enum.StrEnum):
    CREATE = "create"
    CHANGE = "change"
    KEEP = "keep"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Work:
    what: str  # as in "creating role eva-main-workers"
    do: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Step:
    """`details` are what a reader should know of it, in a few words each."""

    action: Action
    kind: str
    name: str
    details: tuple[str, ...] = ()
    work: tuple[Work, ...] = ()

    def as_json(self) -> dict[str, object]:
        return {
            "action": self.action.value,
            "kind": self.kind,
            "name": self.name,
            "details": list(self.details),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    steps: tuple[Step, ...]

    @property
    def pending(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.work)

    def carry_out(self, api: Api) -> Iterator[Step]:
        """Each step, once it is done."""
        for step in self.pending:
            for each in step.work:
                with api.doing(each.what):
                    each.do()
            yield step


def compared(kind: str, name: str, details: tuple[str, ...], work: tuple[Work, ...]) -> Step:
    """Of what is there already: kept if nothing has to be done to it."""
    return Step(Action.CHANGE if work else Action.KEEP, kind, name, details, work)
