"""Gathering writes into commits, with a commit that a test can hold open or break."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from eva.adapters.group_commit import GroupCommitter
from eva.model.errors import InvariantError, OperatorError, TryAgainError

Work = Callable[[list[str]], list[object]]


class Disk:
    """Commits into a list; `gate` holds a commit open, `failure` breaks the next one."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.commits = 0
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.failure: BaseException | None = None

    def commit(self, work: Work) -> list[object]:
        self.entered.set()
        assert self.gate.wait(10)
        written: list[str] = []
        outcomes = work(written)
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        self.kept += written
        self.commits += 1
        return outcomes


@pytest.fixture
def disk() -> Disk:
    return Disk()


def writing(text: str) -> Callable[[list[str]], str]:
    def work(written: list[str]) -> str:
        written.append(text)
        return text.upper()

    return work


def gathered_behind_a_held_commit(
    disk: Disk, committer: GroupCommitter[list[str]], *texts: str
) -> tuple[Future[str], list[Future[str]]]:
    """The first write is in its commit, held; the others wait behind it."""
    disk.gate.clear()
    first = committer.submit(writing("first"))
    assert disk.entered.wait(10)
    return first, [committer.submit(writing(text)) for text in texts]


def test_what_arrives_during_a_commit_shares_the_next(disk: Disk) -> None:
    committer = GroupCommitter(disk.commit, "test")
    first, others = gathered_behind_a_held_commit(disk, committer, *"abcdefgh")
    disk.gate.set()
    assert [future.result(10) for future in others] == list("ABCDEFGH")
    assert first.result(10) == "FIRST"
    assert disk.kept == ["first", *"abcdefgh"]
    assert disk.commits == 2
    committer.close()


def test_a_refusal_harms_only_its_own_caller(disk: Disk) -> None:
    committer = GroupCommitter(disk.commit, "test")

    def refuse(_: list[str]) -> None:
        raise OperatorError("not you")

    disk.gate.clear()
    before, refused, after = (
        committer.submit(writing("a")),
        committer.submit(refuse),
        committer.submit(writing("b")),
    )
    disk.gate.set()
    with pytest.raises(OperatorError, match="not you"):
        refused.result(10)
    assert (before.result(10), after.result(10)) == ("A", "B")
    committer.close()


@pytest.mark.parametrize("failure", [TryAgainError("gone"), RuntimeError("a bug")])
def test_a_failed_commit_fails_what_waits_behind_it_and_then_works_again(
    disk: Disk, failure: BaseException
) -> None:
    committer = GroupCommitter(disk.commit, "test")
    first, others = gathered_behind_a_held_commit(disk, committer, "a", "b")
    disk.failure = failure
    disk.gate.set()
    for future in (first, *others):
        with pytest.raises(type(failure)):
            future.result(10)
    assert disk.kept == []
    assert committer.run(writing("again")) == "AGAIN"
    assert disk.kept == ["again"]
    committer.close()


def test_a_caller_that_gave_up_before_its_turn_is_not_written(disk: Disk) -> None:
    committer = GroupCommitter(disk.commit, "test")
    _, (given_up, kept) = gathered_behind_a_held_commit(disk, committer, "no", "yes")
    assert given_up.cancel()
    disk.gate.set()
    assert kept.result(10) == "YES"
    assert disk.kept == ["first", "yes"]
    committer.close()


def test_closing_finishes_what_was_submitted_and_refuses_the_rest(disk: Disk) -> None:
    committer = GroupCommitter(disk.commit, "test")
    futures = [committer.submit(writing(text)) for text in "abc"]
    committer.close()
    assert [future.result(0) for future in futures] == list("ABC")
    with pytest.raises(InvariantError, match="closed"):
        committer.submit(writing("late"))
