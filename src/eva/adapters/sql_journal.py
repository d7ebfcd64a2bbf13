"""The journal in SQL, once, for every database that has transactions.

One row, the head, holds the last sequence number and the lease. Every write reads that row first,
in the transaction that writes, and compares its fencing token: whoever holds an old token finds
out there and nowhere else. The databases differ in how a transaction is run, how its failures are
told apart, and whose clock a lease goes by; that is the `Database` protocol, and each adapter is
one implementation of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar
from zlib import crc32

from eva.adapters.group_commit import GroupCommitter
from eva.model.errors import InvariantError
from eva.ports.journal import (
    KEPT_SNAPSHOTS,
    Appended,
    Entry,
    Fact,
    JournalCompactedError,
    JournalCorruptError,
    Lease,
    LeaseHeldError,
    LeaseLostError,
    Record,
    Snapshot,
    check_appendable,
    checksum,
)

_log = logging.getLogger(__name__)

T = TypeVar("T")
Row = tuple[Any, ...]

PAGE = 1_000  # records read in one transaction
COMPACTED_AT_ONCE = 20_000  # records dropped in one transaction, so that appends never wait long
SCHEMA_VERSION = 1

# {integer} and {blob} are the database's own words for a 64-bit integer and a byte string.
SCHEMA = (
    """CREATE TABLE eva_head (
        id {integer} PRIMARY KEY CHECK (id = 1), seq {integer} NOT NULL,
        compacted {integer} NOT NULL, token {integer} NOT NULL, owner TEXT,
        ttl_ms {integer} NOT NULL, expires_ms {integer} NOT NULL)""",
    "INSERT INTO eva_head VALUES (1, 0, 0, 0, NULL, 0, 0)",
    """CREATE TABLE eva_records (
        seq {integer} PRIMARY KEY, time_ms {integer} NOT NULL, kind TEXT NOT NULL,
        payload {blob} NOT NULL, checksum {integer} NOT NULL)""",
    """CREATE TABLE eva_snapshots (
        seq {integer} PRIMARY KEY, time_ms {integer} NOT NULL, state {blob} NOT NULL,
        checksum {integer} NOT NULL)""",
    """CREATE TABLE eva_facts (
        key TEXT PRIMARY KEY, value {blob} NOT NULL, time_ms {integer} NOT NULL)""",
)


_SELECT_HEAD = "SELECT seq, compacted, token, owner, ttl_ms, expires_ms FROM eva_head"


class Transaction(Protocol):
    """An open transaction. Parameters are written `?`."""

    def rows(self, sql: str, *parameters: object) -> list[Row]: ...
    def run(self, sql: str, *parameters: object) -> int: ...
    def many(self, sql: str, parameters: Sequence[Sequence[object]]) -> None: ...


class Database(Protocol):
    """Runs transactions, and raises nothing but the port's errors when one fails."""

    name: str  # for messages: a path, or an address without its password
    for_update: str  # what to add to a SELECT so that it locks the row

    def write(self, work: Callable[[Transaction], T]) -> T:
        """One transaction, durable on return. May run `work` more than once, commits it once."""
        ...

    def read(self, work: Callable[[Transaction], T]) -> T:
        """One consistent view. Safe from any thread."""
        ...

    def now_ms(self, tx: Transaction) -> int:
        """The clock that leases go by."""
        ...

    def show_alive(self, token: int) -> None:
        """Leave proof that the holder of this token lives, where the system can take it back."""
        ...

    def show_gone(self, token: int) -> None:
        """Take that proof back."""
        ...

    def is_gone(self, token: int) -> bool:
        """Whether it is certain that the holder of this token is dead. False if unknown."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Head:
    seq: int
    compacted: int
    token: int
    owner: str | None
    ttl_ms: int
    expires_ms: int

    def lease(self) -> Lease | None:
        if self.owner is None:
            return None
        return Lease(self.owner, self.token, self.ttl_ms, self.expires_ms)


class SqlJournal:
    """`eva.ports.journal.Journal` over a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._writer: GroupCommitter[Transaction] = GroupCommitter(database.write, database.name)

    # The lease

    def acquire(self, owner: str, ttl_ms: int) -> Lease:
        shown: list[int] = []

        def work(tx: Transaction) -> Lease:
            head, now = self._locked_head(tx), self._database.now_ms(tx)
            held = head.lease()
            if held is not None and now < held.expires_ms:
                if not self._database.is_gone(held.token):
                    raise LeaseHeldError(held, self._database.name)
                _log.info("the process of %r is gone: its lease is taken over", held.owner)
            lease = Lease(owner, head.token + 1, ttl_ms, now + ttl_ms)
            self._database.show_alive(lease.token)
            shown.append(lease.token)
            self._write_lease(tx, lease)
            return lease

        kept: Lease | None = None
        try:
            kept = self._writer.run(work)
            return kept
        finally:
            for token in shown:
                if kept is None or token != kept.token:
                    self._database.show_gone(token)

    def renew(self, lease: Lease) -> Lease:
        def work(tx: Transaction) -> Lease:
            self._fenced(tx, lease)
            renewed = replace(lease, expires_ms=self._database.now_ms(tx) + lease.ttl_ms)
            self._write_lease(tx, renewed)
            return renewed

        return self._writer.run(work)

    def release(self, lease: Lease) -> None:
        self._writer.run(
            lambda tx: tx.run(
                "UPDATE eva_head SET owner = NULL, expires_ms = 0 WHERE token = ?", lease.token
            )
        )
        self._database.show_gone(lease.token)

    def holder(self) -> Lease | None:
        return self._database.read(_read_head).lease()

    # Records

    def submit(
        self, lease: Lease, entries: Sequence[Entry], claim: Fact | None = None
    ) -> Future[Appended]:
        check_appendable(entries, claim)
        fixed = tuple(entries)  # the caller's list may change before the writer comes to it
        return self._writer.submit(lambda tx: self._append(tx, lease, fixed, claim))

    def append(self, lease: Lease, entries: Sequence[Entry], claim: Fact | None = None) -> Appended:
        return self.submit(lease, entries, claim).result()

    def head(self) -> int:
        return self._database.read(_read_head).seq

    def read(self, from_seq: int) -> Iterator[Record]:
        seq = max(1, from_seq)
        while True:
            page = self._page(seq)
            yield from page
            if len(page) < PAGE:
                return
            seq = page[-1].seq + 1

    # Snapshots and compaction

    def save_snapshot(self, lease: Lease, snapshot: Snapshot) -> None:
        def work(tx: Transaction) -> None:
            head = self._fenced(tx, lease)
            if not 0 <= snapshot.seq <= head.seq:
                raise InvariantError(
                    f"a snapshot at record {snapshot.seq}, but {self._database.name} ends at "
                    f"{head.seq}: save it only after the append has returned"
                )
            tx.run("DELETE FROM eva_snapshots WHERE seq = ?", snapshot.seq)
            tx.run(
                "INSERT INTO eva_snapshots (seq, time_ms, state, checksum) VALUES (?, ?, ?, ?)",
                *(snapshot.seq, snapshot.time_ms, snapshot.state, crc32(snapshot.state)),
            )
            tx.run(
                "DELETE FROM eva_snapshots WHERE seq NOT IN "
                "(SELECT seq FROM eva_snapshots ORDER BY seq DESC LIMIT ?)",
                KEPT_SNAPSHOTS,
            )

        self._writer.run(work)

    def latest_snapshot(self) -> Snapshot | None:
        rows = self._database.read(
            lambda tx: tx.rows(
                "SELECT seq, time_ms, state, checksum FROM eva_snapshots ORDER BY seq DESC"
            )
        )
        for seq, time_ms, state, expected in rows:
            if crc32(state) == expected:
                return Snapshot(seq, time_ms, bytes(state))
            _log.warning(
                "the snapshot at record %d of %s does not verify: trying the one before it",
                *(seq, self._database.name),
            )
        if rows:
            raise JournalCorruptError(
                f"none of the {len(rows)} snapshots of {self._database.name} verifies: restore "
                "it from a backup"
            )
        return None

    def compact(self, lease: Lease) -> int:
        dropped = 0
        while True:
            count = self._writer.run(lambda tx: self._compact_some(tx, lease))
            dropped += count
            if count < COMPACTED_AT_ONCE:
                return dropped

    # Facts

    def put_fact(self, lease: Lease, fact: Fact) -> None:
        def work(tx: Transaction) -> None:
            self._fenced(tx, lease)
            tx.run("DELETE FROM eva_facts WHERE key = ?", fact.key)
            _insert_fact(tx, fact)

        self._writer.run(work)

    def fact(self, key: str) -> Fact | None:
        return self._database.read(lambda tx: _find_fact(tx, key))

    def forget_facts(self, lease: Lease, prefix: str, before_ms: int) -> int:
        def work(tx: Transaction) -> int:
            self._fenced(tx, lease)
            return tx.run(
                "DELETE FROM eva_facts WHERE substr(key, 1, ?) = ? AND time_ms < ?",
                *(len(prefix), prefix, before_ms),
            )

        return self._writer.run(work)

    def close(self) -> None:
        self._writer.close()
        self._database.close()

    # Within a transaction

    def _locked_head(self, tx: Transaction) -> _Head:
        return _read_head(tx, self._database.for_update)

    def _fenced(self, tx: Transaction, lease: Lease) -> _Head:
        head = self._locked_head(tx)
        if head.token != lease.token or head.owner is None:
            raise LeaseLostError(lease, head.token, head.owner, self._database.name)
        return head

    def _write_lease(self, tx: Transaction, lease: Lease) -> None:
        tx.run(
            "UPDATE eva_head SET token = ?, owner = ?, ttl_ms = ?, expires_ms = ?",
            *(lease.token, lease.owner, lease.ttl_ms, lease.expires_ms),
        )

    def _append(
        self, tx: Transaction, lease: Lease, entries: Sequence[Entry], claim: Fact | None
    ) -> Appended:
        head = self._fenced(tx, lease)
        if claim is not None:
            earlier = _find_fact(tx, claim.key)
            if earlier is not None:
                return Appended(range(0), earlier)
            _insert_fact(tx, claim)
        seqs = range(head.seq + 1, head.seq + 1 + len(entries))
        tx.many(
            "INSERT INTO eva_records (seq, time_ms, kind, payload, checksum) "
            "VALUES (?, ?, ?, ?, ?)",
            [
                (seq, e.time_ms, e.kind, e.payload, checksum(seq, e.time_ms, e.kind, e.payload))
                for seq, e in zip(seqs, entries, strict=True)
            ],
        )
        tx.run("UPDATE eva_head SET seq = ?", head.seq + len(entries))
        return Appended(seqs)

    def _compact_some(self, tx: Transaction, lease: Lease) -> int:
        head = self._fenced(tx, lease)
        ((count, oldest),) = tx.rows("SELECT COUNT(*), MIN(seq) FROM eva_snapshots")
        if count < KEPT_SNAPSHOTS:
            return 0  # one snapshot alone is no fallback for itself
        upto = min(oldest, head.compacted + COMPACTED_AT_ONCE)
        if upto <= head.compacted:
            return 0
        tx.run("DELETE FROM eva_records WHERE seq <= ?", upto)
        tx.run("UPDATE eva_head SET compacted = ?", upto)
        return int(upto) - head.compacted

    def _page(self, seq: int) -> list[Record]:
        def work(tx: Transaction) -> tuple[_Head, list[Row]]:
            return _read_head(tx), tx.rows(
                "SELECT seq, time_ms, kind, payload, checksum FROM eva_records "
                "WHERE seq >= ? ORDER BY seq LIMIT ?",
                *(seq, PAGE),
            )

        head, rows = self._database.read(work)
        if seq <= head.compacted:
            raise JournalCompactedError(
                f"record {seq} of {self._database.name} was compacted away, as were all up to "
                f"{head.compacted}: start from the latest snapshot"
            )
        expected = range(seq, min(seq + PAGE, head.seq + 1))
        if len(rows) != len(expected):
            raise self._corrupt(f"holds {len(rows)} of the {len(expected)} records from {seq} on")
        return [self._verified(number, row) for number, row in zip(expected, rows, strict=True)]

    def _verified(self, expected: int, row: Row) -> Record:
        seq, time_ms, kind, payload, stored = row
        whole = seq == expected and isinstance(payload, bytes)
        if not whole or checksum(seq, time_ms, kind, payload) != stored:
            raise self._corrupt(f"does not verify at record {expected}")
        return Record(seq, time_ms, kind, payload)

    def _corrupt(self, what: str) -> JournalCorruptError:
        return JournalCorruptError(
            f"{self._database.name} {what}: restore it from a backup, and check the disk under it"
        )


def _read_head(tx: Transaction, for_update: str = "") -> _Head:
    ((seq, compacted, token, owner, ttl_ms, expires_ms),) = tx.rows(_SELECT_HEAD + for_update)
    return _Head(seq, compacted, token, owner, ttl_ms, expires_ms)


def _find_fact(tx: Transaction, key: str) -> Fact | None:
    for value, time_ms in tx.rows("SELECT value, time_ms FROM eva_facts WHERE key = ?", key):
        return Fact(key, bytes(value), time_ms)
    return None


def _insert_fact(tx: Transaction, fact: Fact) -> None:
    tx.run(
        "INSERT INTO eva_facts (key, value, time_ms) VALUES (?, ?, ?)",
        *(fact.key, fact.value, fact.time_ms),
    )
