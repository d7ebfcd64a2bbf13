"""500 fault schedules with every promise checked, and the planted bugs that they must find."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eva.control.controller import Controller
from eva.control.journal import EVENT_TYPES
from tests.simulation.mutations import FOUND_BY, MUTATIONS, planted
from tests.simulation.scenarios import run
from tests.simulation.soak import SYMPTOMS

SCHEDULES = 500
PER_TEST = 25
REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("start", range(0, SCHEDULES, PER_TEST))
def test_no_fault_schedule_breaks_a_promise(start: int) -> None:
    for seed in range(start, start + PER_TEST):
        try:
            run(seed, fold_journal=seed % 5 == 0)
        except Exception as error:
            error.add_note(f"seed {seed}: repeat with tests.simulation.scenarios.run({seed})")
            raise


def test_the_schedules_contain_every_kind_of_event() -> None:
    """A suite that never loses an instance says nothing about losing one."""
    seen: set[str] = set()
    handle = Controller.handle

    def watched(self: Controller, event: object, now_ms: int) -> object:
        seen.add(type(event).__name__)
        return handle(self, event, now_ms)  # type: ignore[arg-type]  # passed through as it came

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Controller, "handle", watched)
        for seed in range(60):
            run(seed)
    assert seen == set(EVENT_TYPES)


def test_every_planted_bug_has_a_seed() -> None:
    assert set(FOUND_BY) == set(MUTATIONS)
    assert len(MUTATIONS) >= 10


@pytest.mark.parametrize("mutation", sorted(FOUND_BY))
def test_planted_bug_is_found(mutation: str) -> None:
    seed = FOUND_BY[mutation]
    with planted(mutation), pytest.raises(SYMPTOMS):
        run(seed, fold_journal=seed % 5 == 0)
    run(seed)  # and it is the bug that was found, not something else


def test_the_same_seed_gives_the_same_journal_in_every_process() -> None:
    """Under different hash seeds, so that no order of a set or dict of strings can hide."""
    script = (
        "from tests.simulation.scenarios import run;"
        "print([run(seed).journal_hash for seed in range(12)])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=REPOSITORY,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1
    assert len(set(outputs.pop().split(","))) == 12
