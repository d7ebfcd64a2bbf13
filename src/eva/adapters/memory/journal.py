"""A journal in memory: the contract without a disk, for simulations and for tests of drivers.

`refuse_next` makes the next write fail as a real store would, so that what a driver does about a
full disk or a lost connection can be tried without either.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace

from eva.model.errors import EvaError, InvariantError
from eva.ports.journal import (
    KEPT_SNAPSHOTS,
    Appended,
    Entry,
    Fact,
    JournalCompactedError,
    Lease,
    LeaseHeldError,
    LeaseLostError,
    Record,
    Snapshot,
    check_appendable,
)

_NAME = "the journal in memory"


class MemoryJournal:
    """`eva.ports.journal.Journal` in lists and dicts. Leases go by `now_ms`."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._lock = threading.RLock()
        self._records: list[Record] = []
        self._compacted = 0
        self._snapshots: list[Snapshot] = []
        self._facts: dict[str, Fact] = {}
        self._token = 0
        self._lease: Lease | None = None
        self._refusals: list[EvaError] = []

    def refuse_next(self, *errors: EvaError) -> None:
        """Let the next writes fail, one error each."""
        self._refusals.extend(errors)

    def acquire(self, owner: str, ttl_ms: int) -> Lease:
        with self._lock:
            now = self._now_ms()
            if self._lease is not None and now < self._lease.expires_ms:
                raise LeaseHeldError(self._lease, _NAME)
            self._token += 1
            self._lease = Lease(owner, self._token, ttl_ms, now + ttl_ms)
            return self._lease

    def renew(self, lease: Lease) -> Lease:
        with self._lock:
            self._check(lease)
            self._lease = replace(lease, expires_ms=self._now_ms() + lease.ttl_ms)
            return self._lease

    def release(self, lease: Lease) -> None:
        with self._lock:
            if self._lease is not None and self._lease.token == lease.token:
                self._lease = None

    def holder(self) -> Lease | None:
        return self._lease

    def submit(
        self, lease: Lease, entries: Sequence[Entry], claim: Fact | None = None
    ) -> Future[Appended]:
        check_appendable(entries, claim)
        answer: Future[Appended] = Future()
        try:
            answer.set_result(self._append(lease, entries, claim))
        except EvaError as error:
            answer.set_exception(error)
        return answer

    def append(self, lease: Lease, entries: Sequence[Entry], claim: Fact | None = None) -> Appended:
        return self.submit(lease, entries, claim).result()

    def head(self) -> int:
        with self._lock:
            return self._compacted + len(self._records)

    def read(self, from_seq: int) -> Iterator[Record]:
        seq = max(1, from_seq)
        with self._lock:
            if seq <= self._compacted:
                raise JournalCompactedError(
                    f"record {seq} of {_NAME} was compacted away, as were all up to "
                    f"{self._compacted}: start from the latest snapshot"
                )
            found = self._records[seq - self._compacted - 1 :]
        yield from found

    def save_snapshot(self, lease: Lease, snapshot: Snapshot) -> None:
        with self._lock:
            self._check(lease)
            if not 0 <= snapshot.seq <= self.head():
                raise InvariantError(
                    f"a snapshot at record {snapshot.seq}, but {_NAME} ends at {self.head()}: "
                    "save it only after the append has returned"
                )
            others = [kept for kept in self._snapshots if kept.seq != snapshot.seq]
            ordered = sorted([*others, snapshot], key=lambda kept: kept.seq)
            self._snapshots = ordered[-KEPT_SNAPSHOTS:]

    def latest_snapshot(self) -> Snapshot | None:
        with self._lock:
            return self._snapshots[-1] if self._snapshots else None

    def compact(self, lease: Lease) -> int:
        with self._lock:
            self._check(lease)
            if len(self._snapshots) < KEPT_SNAPSHOTS:
                return 0
            dropped = max(0, self._snapshots[0].seq - self._compacted)
            del self._records[:dropped]
            self._compacted += dropped
            return dropped

    def put_fact(self, lease: Lease, fact: Fact) -> None:
        with self._lock:
            self._check(lease)
            self._facts[fact.key] = fact

    def fact(self, key: str) -> Fact | None:
        with self._lock:
            return self._facts.get(key)

    def forget_facts(self, lease: Lease, prefix: str, before_ms: int) -> int:
        with self._lock:
            self._check(lease)
            kept = {
                key: fact
                for key, fact in self._facts.items()
                if fact.time_ms >= before_ms or not key.startswith(prefix)
            }
            dropped, self._facts = len(self._facts) - len(kept), kept
            return dropped

    def close(self) -> None:
        """Nothing to let go of: another driver may be given the same journal, as after a crash."""

    def _check(self, lease: Lease) -> None:
        """What every write starts with."""
        if self._refusals:
            raise self._refusals.pop(0)
        if self._lease is None or self._lease.token != lease.token:
            owner = None if self._lease is None else self._lease.owner
            raise LeaseLostError(lease, self._token, owner, _NAME)

    def _append(self, lease: Lease, entries: Sequence[Entry], claim: Fact | None) -> Appended:
        with self._lock:
            self._check(lease)
            if claim is not None:
                if claim.key in self._facts:
                    return Appended(range(0), self._facts[claim.key])
                self._facts[claim.key] = claim
            start = self.head() + 1
            seqs = range(start, start + len(entries))
            self._records.extend(
                Record(seq, entry.time_ms, entry.kind, entry.payload)
                for seq, entry in zip(seqs, entries, strict=True)
            )
            return Appended(seqs)
