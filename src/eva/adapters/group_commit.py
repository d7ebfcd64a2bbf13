"""Many callers, one fsync: writes that arrive while a commit is under way share the next one.

A single thread owns the writing connection. Every write is a small job, a function of an open
transaction; the thread takes all that have gathered, runs them in one transaction in the order
of their arrival, and answers each of them only after that transaction is durable. A job may
refuse by raising an EvaError before it has written anything; the others of its group then still
go through. If the transaction itself fails, the group fails, and with it everything that was
already waiting: its callers counted on the order.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from eva.model.errors import EvaError, InvariantError

T = TypeVar("T")
Tx = TypeVar("Tx")

MAX_GROUP = 512  # jobs in one transaction: bounds how long a commit can take


@dataclass(frozen=True, slots=True)
class _Job(Generic[Tx]):
    work: Callable[[Tx], Any]
    answer: Future[Any]


class GroupCommitter(Generic[Tx]):
    """`commit` runs a function in one durable transaction; jobs are gathered into its calls."""

    def __init__(
        self, commit: Callable[[Callable[[Tx], list[object]]], list[object]], name: str
    ) -> None:
        self._commit = commit
        self._name = name
        self._waiting: deque[_Job[Tx]] = deque()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal-writer")

    def submit(self, work: Callable[[Tx], T]) -> Future[T]:
        answer: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise InvariantError(f"{self._name} is closed: open it again before writing")
            self._waiting.append(_Job(work, answer))
            self._thread.submit(self._drain)
        return answer

    def run(self, work: Callable[[Tx], T]) -> T:
        return self.submit(work).result()

    def close(self) -> None:
        """Finish what was submitted; refuse what comes after."""
        with self._lock:
            self._closed = True
        self._thread.shutdown(wait=True)

    def _take(self, limit: int | None) -> list[_Job[Tx]]:
        with self._lock:
            count = len(self._waiting) if limit is None else min(limit, len(self._waiting))
            jobs = [self._waiting.popleft() for _ in range(count)]
        # A caller that gave up before its turn is not written; from here on it cannot give up.
        return [job for job in jobs if job.answer.set_running_or_notify_cancel()]

    def _drain(self) -> None:
        jobs = self._take(MAX_GROUP)
        if not jobs:
            return
        try:
            outcomes = self._commit(lambda tx: [_outcome(job, tx) for job in jobs])
        except BaseException as error:  # whatever it is, no caller may be left waiting for ever
            for job in [*jobs, *self._take(None)]:
                job.answer.set_exception(error)
            raise
        for job, outcome in zip(jobs, outcomes, strict=True):
            if isinstance(outcome, EvaError):
                job.answer.set_exception(outcome)
            else:
                job.answer.set_result(outcome)


def _outcome(job: _Job[Tx], tx: Tx) -> object:
    try:
        return job.work(tx)
    except EvaError as refusal:
        return refusal
