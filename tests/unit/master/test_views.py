"""Decisions in words."""

from __future__ import annotations

import math

from eva.master.views import decision_text
from eva.model.plan import Candidate, Decision


def candidate(name: str, saving: int, migration: int) -> Candidate:
    return Candidate(name, 0, saving, migration, 0, 0)


def test_candidates_that_come_to_the_same_are_told_once() -> None:
    candidates = (
        candidate("partial", 1_000_000, 0),
        candidate("full", 3_000_000, 500_000),
        candidate("full by sets", 3_000_000, 500_000),
    )
    assert decision_text(Decision("full", candidates, 0.5)) == (
        "full = full by sets: $3.0000/h below each task on its own, for 30m00s, less $0.5000 to "
        "get there = $1.0000; rejected: partial: $1.0000/h below each task on its own, for 30m00s, "
        "less $0.0000 to get there = $0.5000"
    )


def test_an_infinite_horizon() -> None:
    told = decision_text(Decision("full", (candidate("full", 3_000_000, 500_000),), math.inf))
    assert told == (
        "full: $3.0000/h below each task on its own, for good, less $0.5000 to get there; "
        "rejected: nothing, there was no other plan"
    )


def test_where_all_come_to_the_same_there_was_no_choice() -> None:
    candidates = (candidate("partial", 1_000_000, 0), candidate("full", 1_000_000, 0))
    assert decision_text(Decision("partial", candidates, 1.0)) == (
        "partial = full: $1.0000/h below each task on its own, for 1h00m, less $0.0000 to get "
        "there = $1.0000; rejected: nothing, all come to the same"
    )


def test_policies_that_weigh_nothing() -> None:
    assert "weighs no alternatives" in decision_text(Decision("only"))
