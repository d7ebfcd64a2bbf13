"""The journal: the one durable memory of a cluster, and the lease that makes it have one writer.

It is an append-only sequence of records whose meaning it does not know, state blobs (snapshots)
that spare a recovery from folding from the first record, and small facts (the cluster's id, where
its CA lives, the answers given under idempotency keys). Everything the driver promises to a user
rests on two sentences: an append returns only when it is durable, and a master that lost its
lease can never append, because the fencing token is compared inside the very transaction that
writes.

Calls block and are safe from any thread. `submit` is the door for an event loop:
`await asyncio.wrap_future(journal.submit(lease, entries))`; submissions that arrive while one
commit is under way share the next one. They are written in the order in which they were
submitted, and when a commit fails, whatever was already waiting behind it fails with it, so that
a later record never lands without the earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

from eva.model.errors import InvariantError, OperatorError, TryAgainError

KEPT_SNAPSHOTS = 2  # the newest, and one to fall back on should the newest not verify


@dataclass(frozen=True, slots=True)
class Entry:
    """A record before it has a number."""

    time_ms: int
    kind: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Record:
    """An entry in its place: numbered from 1, without gaps."""

    seq: int
    time_ms: int
    kind: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The folded state after record `seq`."""

    seq: int
    time_ms: int
    state: bytes


@dataclass(frozen=True, slots=True)
class Fact:
    """A small named value, with the time it was written at, so that old answers can be dropped."""

    key: str
    value: bytes
    time_ms: int


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write. `token` rises with every acquisition and is what every write shows."""

    owner: str
    token: int
    ttl_ms: int
    expires_ms: int


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of an append: its numbers, or the fact that had claimed the same key before.

    With `earlier` set, nothing was written: `earlier.value` is the answer to give again.
    """

    seqs: range
    earlier: Fact | None = None


class Journal(Protocol):
    """What a driver needs of a journal. Adapters: sqlite, postgres, memory."""

    # The lease. Expired but untaken is still held: only another owner's acquisition loses it.
    def acquire(self, owner: str, ttl_ms: int) -> Lease:
        """The lease, under a new token; LeaseHeldError while another owner's is alive."""
        ...

    def renew(self, lease: Lease) -> Lease:
        """The same lease for another `ttl_ms`; LeaseLostError when another owner took it."""
        ...

    def release(self, lease: Lease) -> None:
        """Give the lease back at once; nothing happens if it was lost already."""
        ...

    def holder(self) -> Lease | None:
        """Who holds the lease, dead or alive; for showing, never for deciding."""
        ...

    # Records
    def submit(
        self, lease: Lease, entries: Sequence[Entry], claim: Fact | None = None
    ) -> Future[Appended]:
        """Write all entries, and the claim's fact, in one transaction, or none of them.

        If the claim's key exists, nothing is written and the answer is the fact that stands.
        """
        ...

    def append(self, lease: Lease, entries: Sequence[Entry], claim: Fact | None = None) -> Appended:
        """`submit`, waited for."""
        ...

    def head(self) -> int:
        """The number of the last record; 0 in an empty journal."""
        ...

    def read(self, from_seq: int) -> Iterator[Record]:
        """Records from `from_seq` on, verified; JournalCompactedError if they are gone."""
        ...

    # Snapshots and compaction
    def save_snapshot(self, lease: Lease, snapshot: Snapshot) -> None:
        """Keep a state; the newest KEPT_SNAPSHOTS stay."""
        ...

    def latest_snapshot(self) -> Snapshot | None:
        """The newest snapshot that verifies."""
        ...

    def compact(self, lease: Lease) -> int:
        """Drop the records that no kept snapshot needs; how many those were."""
        ...

    # Facts
    def put_fact(self, lease: Lease, fact: Fact) -> None:
        """Write or overwrite a fact."""
        ...

    def fact(self, key: str) -> Fact | None:
        """The fact of this key."""
        ...

    def forget_facts(self, lease: Lease, prefix: str, before_ms: int) -> int:
        """Drop facts of this prefix written before a time; how many those were."""
        ...

    def close(self) -> None:
        """Finish what was submitted, and let go. The lease is not released by this."""
        ...


class JournalFullError(OperatorError):
    """No space is left for the journal. Nothing of the append was kept."""


class JournalCorruptError(OperatorError):
    """What is stored does not verify."""


class JournalVersionError(OperatorError):
    """Written by a newer Eva."""


class JournalAccessError(OperatorError):
    """The journal cannot be opened or written: path, permission, credentials, device."""


class JournalCompactedError(OperatorError):
    """The records asked for were dropped by compaction."""


class JournalUnreachableError(TryAgainError):
    """The store does not answer.

    `in_doubt`: the connection broke in a commit and its outcome could not be learned since, so the
    append may or may not be there. Do not repeat it: recover by reading the journal.
    """

    def __init__(self, message: str, *, in_doubt: bool = False) -> None:
        self.in_doubt = in_doubt
        super().__init__(message)


class LeaseHeldError(TryAgainError):
    """Another master is alive."""

    def __init__(self, lease: Lease, journal: str) -> None:
        self.lease = lease
        super().__init__(
            f"the lease of {journal} is held by {lease.owner!r} until {lease.expires_ms} "
            f"(token {lease.token}): stop that master, or wait until its lease has run out"
        )


class LeaseLostError(OperatorError):
    """Another master took over, or the lease was given back: this one must stop acting."""

    def __init__(self, lease: Lease, token: int, owner: str | None, journal: str) -> None:
        self.lease = lease
        now_held = f"now held by {owner!r}" if owner else "now free"
        super().__init__(
            f"{lease.owner!r} no longer holds the lease of {journal}: its token {lease.token} was "
            f"followed by {token}, {now_held}. Nothing was written; stop this master"
        )


def checksum(seq: int, time_ms: int, kind: str, payload: bytes) -> int:
    """What every adapter stores beside a record, so that a flipped bit is found on reading."""
    return crc32(payload, crc32(f"{seq}:{time_ms}:{kind}:".encode()))


def check_appendable(entries: Sequence[Entry], claim: Fact | None) -> None:
    """Refuse what no store can keep, before it reaches one."""
    if not entries and claim is None:
        raise InvariantError("an append of nothing: give at least one entry or a claim")
    for entry in entries:
        if not entry.kind or "\0" in entry.kind:
            raise InvariantError(f"a record's kind must be text without NUL, not {entry.kind!r}")
