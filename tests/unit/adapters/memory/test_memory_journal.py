"""The journal in memory fails on request, so that drivers can be tested against failures."""

from __future__ import annotations

import pytest

from eva.adapters.memory.journal import MemoryJournal
from eva.ports.journal import Entry, Fact, JournalFullError, JournalUnreachableError


def test_the_next_writes_fail_as_asked_and_leave_nothing() -> None:
    journal = MemoryJournal(lambda: 0)
    lease = journal.acquire("a", 1_000)
    journal.refuse_next(JournalFullError("full"), JournalUnreachableError("gone"))
    with pytest.raises(JournalFullError):
        journal.append(lease, [Entry(0, "k", b"")], Fact("key", b"", 0))
    with pytest.raises(JournalUnreachableError):
        journal.put_fact(lease, Fact("key", b"", 0))
    assert journal.head() == 0
    assert journal.fact("key") is None
    assert journal.append(lease, [Entry(0, "k", b"")]).seqs == range(1, 2)
