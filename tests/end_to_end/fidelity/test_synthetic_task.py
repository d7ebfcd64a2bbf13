"""The synthetic task: its speed is the matrix's, its job's is its slowest task's."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from benchmarks.fidelity.task import Board, Work

MATRIX = {
    "quiet": {"quiet": 1.0, "loud": 0.5},
    "loud": {"quiet": 0.9, "loud": 0.8},
}


def never() -> bool:
    return False


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "matrix.json").write_text(json.dumps(MATRIX))
    return tmp_path


def board(
    root: Path,
    patch: pytest.MonkeyPatch,
    job: str,
    workload: str,
    *,
    instance: str = "one",
    rank: int = 0,
    ranks: int = 1,
) -> Board:
    """The board as a task of this place sees it."""
    patch.setenv("EVA_JOB", job)
    patch.setenv("EVA_RANK", str(rank))
    patch.setenv("EVA_WORLD_SIZE", str(ranks))
    patch.setenv("EVA_SOCKET", f"/tmp/{instance}/{job}.{rank}/eva.sock")
    made = Board(root, workload)
    made.enter()
    return made


def test_speed_is_the_product_over_neighbours(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = board(root, monkeypatch, "a", "quiet")
    assert quiet.speed() == 1.0
    loud = board(root, monkeypatch, "b", "loud")
    also_loud = board(root, monkeypatch, "c", "loud")
    board(root, monkeypatch, "d", "loud", instance="two")
    assert quiet.speed() == 0.25
    assert loud.speed() == pytest.approx(0.9 * 0.8)
    also_loud.leave()
    assert (quiet.speed(), loud.speed()) == (0.5, 0.9)


def test_gang_goes_as_its_slowest_and_not_before_all_are_there(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = board(root, monkeypatch, "gang", "quiet", rank=0, ranks=2)
    assert leader.speed() == 0.0
    follower = board(root, monkeypatch, "gang", "quiet", instance="two", rank=1, ranks=2)
    board(root, monkeypatch, "beside", "loud", instance="two")
    assert follower.speed() == 0.5
    assert leader.speed() == 0.5
    follower.leave()
    assert leader.speed() == 0.0


def test_work_takes_its_time_and_every_step_is_handed_out_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = board(root, monkeypatch, "a", "quiet")
    began_s = time.monotonic()
    assert len(list(Work(alone, 5.5, 25.0, 100.0, never).steps())) == 20
    assert time.monotonic() - began_s >= 0.195


def test_follower_stands_where_its_leader_stands(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = board(root, monkeypatch, "gang", "quiet", rank=0, ranks=2)
    follower = board(root, monkeypatch, "gang", "quiet", instance="two", rank=1, ranks=2)
    leader.publish(3.0)
    work = Work(follower, 0.0, 3.0, 100.0, never)
    assert len(list(work.steps())) == 3
    assert work.done == 3.0


def test_one_who_waits_for_siblings_hears_that_it_is_asked(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = board(root, monkeypatch, "gang", "quiet", rank=0, ranks=2)
    answers = iter([False, False, True])
    work = Work(leader, 2.0, 3.0, 100.0, lambda: next(answers))
    assert list(work.steps()) == []
    assert not work.over
