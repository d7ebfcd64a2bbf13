"""What the journal says when all is over: was anything lost that was promised?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load.submitting import Answer
from eva.adapters.stores import open_journal
from eva.master.memory import EVENT
from eva.master.submission import KEYS
from eva.ports.journal import Journal


@dataclass(frozen=True, slots=True)
class Aftermath:
    """`lost` are accepted jobs that are not there, `strange` jobs that nobody was told of."""

    records: int
    jobs: int
    lost: tuple[str, ...]
    strange: tuple[str, ...]
    under_another_key: tuple[str, ...]
    twice: tuple[str, ...]  # tasks that finished more than once
    exits: int
    plans_s: tuple[float, ...]
    plans_failed: int


def read_aftermath(home: Path, answers: Iterable[Answer]) -> Aftermath:
    accepted = {answer.job: answer.key for answer in answers if answer.job}
    story = _Story()
    journal = open_journal(None, home)
    try:
        for record in journal.read(1):
            story.records += 1
            if record.kind == EVENT:
                story.take(record.time_ms, json.loads(record.payload))
        misfiled = tuple(j for j, key in accepted.items() if _job_of(journal, key) != j)
    finally:
        journal.close()
    return Aftermath(
        story.records,
        len(story.jobs),
        tuple(sorted(accepted.keys() - story.jobs)),
        tuple(sorted(story.jobs - accepted.keys())),
        misfiled,
        tuple(task for task, count in story.finished.items() if count > 1),
        story.exits,
        tuple(story.plans_s),
        story.plans_failed,
    )


def _job_of(journal: Journal, key: str) -> str | None:
    """The answer that stands under an idempotency key."""
    fact = journal.fact(f"{KEYS}{key}")
    return None if fact is None else str(json.loads(fact.value)["job"])


class _Story:
    """Events, counted. A plan is asked for at the first round after the last plan came back."""

    def __init__(self) -> None:
        self.records = self.exits = self.plans_failed = 0
        self.jobs: set[str] = set()
        self.finished: Counter[str] = Counter()
        self.plans_s: list[float] = []
        self._asked_ms: int | None = None

    def take(self, now_ms: int, event: dict[str, object]) -> None:
        match event["event"]:
            case "JobSubmitted":
                self.jobs.add(str(event["job"]))
            case "TaskExited":
                self.exits += 1
                self.finished[str(event["task"])] += event["exit_code"] == 0
            case "RoundDue" if self._asked_ms is None:
                self._asked_ms = now_ms
            case "PlanComputed" | "PlanFailed":
                if self._asked_ms is not None:
                    self.plans_s.append((now_ms - self._asked_ms) / 1_000)
                self.plans_failed += event["event"] == "PlanFailed"
                self._asked_ms = None
