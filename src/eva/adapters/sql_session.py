"""A database as the journal sees it: tables, transactions, and one transaction's view of the head.

One row, the head, holds the last sequence number and the lease. It is read and locked first in
every transaction that writes, and everything else is decided against it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from eva.ports.journal import Entry, Lease, LeaseLostError, checksum

T = TypeVar("T")
Row = tuple[Any, ...]

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
class Head:
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


class Session:
    """One transaction's view of the head, read and locked once, whatever many jobs share it.

    New records are gathered here and written together at the end: over a network, a hundred
    appends in one transaction then take as many round trips as one.
    """

    def __init__(self, database: Database, tx: Transaction) -> None:
        self.tx = tx
        self._database = database
        self._head: Head | None = None
        self._rows: list[Row] = []

    @property
    def head(self) -> Head:
        if self._head is None:
            self._head = read_head(self.tx, self._database.for_update)
        return self._head

    def fence(self, lease: Lease) -> None:
        """What every write starts with."""
        if self.head.token != lease.token or self.head.owner is None:
            raise LeaseLostError(lease, self.head.token, self.head.owner, self._database.name)

    def append(self, entries: Sequence[Entry]) -> range:
        seqs = range(self.head.seq + 1, self.head.seq + 1 + len(entries))
        self._rows += [
            (seq, e.time_ms, e.kind, e.payload, checksum(seq, e.time_ms, e.kind, e.payload))
            for seq, e in zip(seqs, entries, strict=True)
        ]
        self._head = replace(self.head, seq=self.head.seq + len(entries))
        return seqs

    def set_lease(self, token: int, owner: str | None, ttl_ms: int, expires_ms: int) -> None:
        self._head = replace(
            self.head, token=token, owner=owner, ttl_ms=ttl_ms, expires_ms=expires_ms
        )
        self.tx.run(
            "UPDATE eva_head SET token = ?, owner = ?, ttl_ms = ?, expires_ms = ?",
            *(token, owner, ttl_ms, expires_ms),
        )

    def set_compacted(self, upto: int) -> None:
        self._head = replace(self.head, compacted=upto)
        self.tx.run("UPDATE eva_head SET compacted = ?", upto)

    def flush(self) -> None:
        if self._rows:
            self.tx.many(
                "INSERT INTO eva_records (seq, time_ms, kind, payload, checksum) "
                "VALUES (?, ?, ?, ?, ?)",
                self._rows,
            )
            self.tx.run("UPDATE eva_head SET seq = ?", self.head.seq)


def read_head(tx: Transaction, for_update: str = "") -> Head:
    ((seq, compacted, token, owner, ttl_ms, expires_ms),) = tx.rows(_SELECT_HEAD + for_update)
    return Head(seq, compacted, token, owner, ttl_ms, expires_ms)
