"""The journal in SQL, once, for every database that has transactions.

Every write compares its fencing token with the one in the database, in the transaction that
writes: whoever holds an old token finds out there and nowhere else. The databases differ in how a
transaction is run, how its failures are told apart, and whose clock a lease goes by; that is the
`Database` protocol, and each adapter is one implementation of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from zlib import crc32

from eva.adapters.group_commit import GroupCommitter
from eva.adapters.sql_session import Database, Head, Row, Session, Transaction, read_head
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
    Record,
    Snapshot,
    check_appendable,
    checksum,
)

_log = logging.getLogger(__name__)

PAGE = 1_000  # records read in one transaction
COMPACTED_AT_ONCE = 20_000  # records dropped in one transaction, so that appends never wait long


class SqlJournal:
    """`eva.ports.journal.Journal` over a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._writer: GroupCommitter[Session] = GroupCommitter(self._commit, database.name)

    # The lease

    def acquire(self, owner: str, ttl_ms: int) -> Lease:
        shown: list[int] = []

        def work(session: Session) -> Lease:
            held, now = session.head.lease(), self._database.now_ms(session.tx)
            if held is not None and now < held.expires_ms:
                if not self._database.is_gone(held.token):
                    raise LeaseHeldError(held, self._database.name)
                _log.info("the process of %r is gone: its lease is taken over", held.owner)
            lease = Lease(owner, session.head.token + 1, ttl_ms, now + ttl_ms)
            self._database.show_alive(lease.token)
            shown.append(lease.token)
            session.set_lease(lease.token, owner, ttl_ms, lease.expires_ms)
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
        def work(session: Session) -> Lease:
            session.fence(lease)
            expires_ms = self._database.now_ms(session.tx) + lease.ttl_ms
            session.set_lease(lease.token, lease.owner, lease.ttl_ms, expires_ms)
            return replace(lease, expires_ms=expires_ms)

        return self._writer.run(work)

    def release(self, lease: Lease) -> None:
        def work(session: Session) -> None:
            if session.head.token == lease.token:
                session.set_lease(lease.token, None, 0, 0)

        self._writer.run(work)
        self._database.show_gone(lease.token)

    def holder(self) -> Lease | None:
        return self._database.read(read_head).lease()

    # Records

    def submit(
        self, lease: Lease, entries: Sequence[Entry], claim: Fact | None = None
    ) -> Future[Appended]:
        check_appendable(entries, claim)
        fixed = tuple(entries)  # the caller's list may change before the writer comes to it
        return self._writer.submit(lambda session: _append(session, lease, fixed, claim))

    def append(self, lease: Lease, entries: Sequence[Entry], claim: Fact | None = None) -> Appended:
        return self.submit(lease, entries, claim).result()

    def head(self) -> int:
        return self._database.read(read_head).seq

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
        def work(session: Session) -> None:
            session.fence(lease)
            tx = session.tx
            if not 0 <= snapshot.seq <= session.head.seq:
                raise InvariantError(
                    f"a snapshot at record {snapshot.seq}, but {self._database.name} ends at "
                    f"{session.head.seq}: save it only after the append has returned"
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
            count = self._writer.run(lambda session: _compact_some(session, lease))
            dropped += count
            if count < COMPACTED_AT_ONCE:
                return dropped

    # Facts

    def put_fact(self, lease: Lease, fact: Fact) -> None:
        def work(session: Session) -> None:
            session.fence(lease)
            session.tx.run("DELETE FROM eva_facts WHERE key = ?", fact.key)
            _insert_fact(session.tx, fact)

        self._writer.run(work)

    def fact(self, key: str) -> Fact | None:
        return self._database.read(lambda tx: _find_fact(tx, key))

    def forget_facts(self, lease: Lease, prefix: str, before_ms: int) -> int:
        def work(session: Session) -> int:
            session.fence(lease)
            return session.tx.run(
                "DELETE FROM eva_facts WHERE substr(key, 1, ?) = ? AND time_ms < ?",
                *(len(prefix), prefix, before_ms),
            )

        return self._writer.run(work)

    def close(self) -> None:
        self._writer.close()
        self._database.close()

    # Within a transaction

    def _commit(self, work: Callable[[Session], list[object]]) -> list[object]:
        def run(tx: Transaction) -> list[object]:
            session = Session(self._database, tx)
            outcomes = work(session)
            session.flush()
            return outcomes

        return self._database.write(run)

    def _page(self, seq: int) -> list[Record]:
        def work(tx: Transaction) -> tuple[Head, list[Row]]:
            return read_head(tx), tx.rows(
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


def _append(
    session: Session, lease: Lease, entries: Sequence[Entry], claim: Fact | None
) -> Appended:
    session.fence(lease)
    if claim is not None:
        earlier = _find_fact(session.tx, claim.key)
        if earlier is not None:
            return Appended(range(0), earlier)
        _insert_fact(session.tx, claim)
    return Appended(session.append(entries))


def _compact_some(session: Session, lease: Lease) -> int:
    session.fence(lease)
    ((count, oldest),) = session.tx.rows("SELECT COUNT(*), MIN(seq) FROM eva_snapshots")
    if count < KEPT_SNAPSHOTS:
        return 0  # one snapshot alone is no fallback for itself
    compacted = session.head.compacted
    upto = min(int(oldest), compacted + COMPACTED_AT_ONCE)
    if upto <= compacted:
        return 0
    session.tx.run("DELETE FROM eva_records WHERE seq <= ?", upto)
    session.set_compacted(upto)
    return upto - compacted


def _find_fact(tx: Transaction, key: str) -> Fact | None:
    for value, time_ms in tx.rows("SELECT value, time_ms FROM eva_facts WHERE key = ?", key):
        return Fact(key, bytes(value), time_ms)
    return None


def _insert_fact(tx: Transaction, fact: Fact) -> None:
    tx.run(
        "INSERT INTO eva_facts (key, value, time_ms) VALUES (?, ?, ?)",
        *(fact.key, fact.value, fact.time_ms),
    )
