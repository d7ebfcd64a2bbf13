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
        "full, of partial: $1.0000/h saved x 0.5000 h - $0.0000 migration = $0.5000; "
        "full, full by sets: $3.0000/h saved x 0.5000 h - $0.5000 migration = $1.0000"
    )


def test_an_infinite_horizon() -> None:
    told = decision_text(Decision("full", (candidate("full", 3_000_000, 500_000),), math.inf))
    assert told == "full: $3.0000/h saved for good, $0.5000 migration once"


def test_where_all_come_to_the_same_there_was_no_choice() -> None:
    candidates = (candidate("partial", 1_000_000, 0), candidate("full", 1_000_000, 0))
    assert decision_text(Decision("partial", candidates, 1.0)) == (
        "partial: $1.0000/h saved x 1.0000 h - $0.0000 migration = $1.0000 (full would be the same)"
    )


def test_policies_that_weigh_nothing() -> None:
    assert "weighs no alternatives" in decision_text(Decision("only"))
