"""The same story told to the journal in memory and to one on disk: they must answer alike.

The journal in memory is so short that it can be read; whatever it does in a random story, SQLite
has to do too, across reopenings and with two masters in the play.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from eva.adapters.memory.journal import MemoryJournal
from eva.adapters.sqlite import open_journal
from eva.model.errors import EvaError
from eva.ports.journal import Entry, Fact, Journal, Lease, Snapshot

MASTERS = st.sampled_from(["a", "b"])
KEYS = st.sampled_from(["submit/1", "submit/2", "cluster"])
TTL_MS = 100
NO_LEASE = Lease("nobody", 0, TTL_MS, 0)


def outcome(act: Callable[[], Any]) -> Any:
    """The answer, or which refusal it was."""
    try:
        return act()
    except EvaError as error:
        return type(error)


class Agreement(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="eva-journal-")
        self._now_ms = 0
        self._memory = MemoryJournal(lambda: self._now_ms)
        self._disk: dict[str, Journal] = {name: self._opened() for name in "ab"}
        self._leases: dict[str, Lease] = {}

    def _opened(self) -> Journal:
        return open_journal(Path(self._folder.name) / "journal.db", lambda: self._now_ms)

    def _both(self, master: str, act: Callable[[Journal, Lease], Any]) -> Any:
        lease = self._leases.get(master, NO_LEASE)
        expected = outcome(lambda: act(self._memory, lease))
        assert outcome(lambda: act(self._disk[master], lease)) == expected
        return expected

    @rule(master=MASTERS)
    def acquire(self, master: str) -> None:
        answer = self._both(master, lambda journal, _: journal.acquire(master, TTL_MS))
        if isinstance(answer, Lease):
            self._leases[master] = answer

    @rule(master=MASTERS)
    def renew(self, master: str) -> None:
        self._both(master, lambda journal, lease: journal.renew(lease))

    @rule(master=MASTERS)
    def release(self, master: str) -> None:
        self._both(master, lambda journal, lease: journal.release(lease))

    @rule(duration_ms=st.integers(1, 2 * TTL_MS))
    def time_passes(self, duration_ms: int) -> None:
        self._now_ms += duration_ms

    @rule(
        master=MASTERS,
        payloads=st.lists(st.binary(max_size=9), min_size=1, max_size=4),
        key=st.none() | KEYS,
    )
    def append(self, master: str, payloads: list[bytes], key: str | None) -> None:
        entries = [Entry(self._now_ms, "said", payload) for payload in payloads]
        claim = None if key is None else Fact(key, payloads[0], self._now_ms)
        self._both(master, lambda journal, lease: journal.append(lease, entries, claim))

    @rule(master=MASTERS, key=KEYS, value=st.binary(max_size=9))
    def put_fact(self, master: str, key: str, value: bytes) -> None:
        fact = Fact(key, value, self._now_ms)
        self._both(master, lambda journal, lease: journal.put_fact(lease, fact))

    @rule(master=MASTERS, prefix=st.sampled_from(["", "submit/", "c"]), age_ms=st.integers(0, 300))
    def forget_facts(self, master: str, prefix: str, age_ms: int) -> None:
        before_ms = self._now_ms - age_ms
        self._both(master, lambda journal, lease: journal.forget_facts(lease, prefix, before_ms))

    @rule(master=MASTERS, seq=st.integers(0, 20), state=st.binary(max_size=9))
    def save_snapshot(self, master: str, seq: int, state: bytes) -> None:
        snapshot = Snapshot(seq, self._now_ms, state)
        self._both(master, lambda journal, lease: journal.save_snapshot(lease, snapshot))

    @rule(master=MASTERS)
    def compact(self, master: str) -> None:
        self._both(master, lambda journal, lease: journal.compact(lease))

    @rule(master=MASTERS, from_seq=st.integers(-1, 20))
    def read(self, master: str, from_seq: int) -> None:
        self._both(master, lambda journal, _: list(journal.read(from_seq)))

    @rule(master=MASTERS)
    def restart_of_one_that_does_not_hold_the_lease(self, master: str) -> None:
        holder = self._memory.holder()
        if holder is None or holder.owner != master:  # its proof of life would go with it
            self._disk[master].close()
            self._disk[master] = self._opened()

    @invariant()
    def they_hold_the_same(self) -> None:
        for journal in self._disk.values():
            assert journal.head() == self._memory.head()
            assert journal.holder() == self._memory.holder()
            assert journal.latest_snapshot() == self._memory.latest_snapshot()
            for key in ("submit/1", "submit/2", "cluster"):
                assert journal.fact(key) == self._memory.fact(key)

    def teardown(self) -> None:
        for journal in self._disk.values():
            journal.close()
        self._folder.cleanup()


TestAgreement = Agreement.TestCase
TestAgreement.settings = settings(max_examples=25, stateful_step_count=30)
