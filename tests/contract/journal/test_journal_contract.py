"""What every journal promises, whatever it is made of."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from eva.model.errors import InvariantError
from eva.ports.journal import (
    Entry,
    Fact,
    Journal,
    JournalCompactedError,
    LeaseHeldError,
    LeaseLostError,
    Record,
    Snapshot,
)
from tests.contract.journal.stores import Store, entries, texts

TTL_MS = 60_000
SHORT_MS = 500


# Records


def test_a_new_journal_is_empty(journal: Journal) -> None:
    assert journal.head() == 0
    assert list(journal.read(1)) == []
    assert journal.latest_snapshot() is None
    assert journal.holder() is None


def test_records_come_back_as_written_numbered_from_one(journal: Journal) -> None:
    lease = journal.acquire("a", TTL_MS)
    odd = Entry(-5, "grüße", bytes(range(256)))
    assert journal.append(lease, [odd, Entry(7, "empty", b"")]).seqs == range(1, 3)
    assert journal.append(lease, entries("third")).seqs == range(3, 4)
    assert list(journal.read(1)) == [
        Record(1, -5, "grüße", bytes(range(256))),
        Record(2, 7, "empty", b""),
        Record(3, 0, "said", b"third"),
    ]
    assert journal.head() == 3


def test_reading_starts_where_asked_and_past_the_end_is_nothing(journal: Journal) -> None:
    lease = journal.acquire("a", TTL_MS)
    journal.append(lease, entries(*"abcd"))
    assert texts(list(journal.read(3))) == ["c", "d"]
    assert texts(list(journal.read(0))) == ["a", "b", "c", "d"]
    assert list(journal.read(5)) == []


def test_reading_spans_many_pages(journal: Journal) -> None:
    lease = journal.acquire("a", TTL_MS)
    written = [str(number) for number in range(2_500)]
    journal.append(lease, entries(*written))
    assert texts(list(journal.read(1))) == written


def test_another_view_of_the_store_sees_what_was_acknowledged(store: Store) -> None:
    first, second = store.open(), store.open()
    lease = first.acquire("a", TTL_MS)
    first.append(lease, entries("x"))
    assert texts(list(second.read(1))) == ["x"]
    assert second.head() == 1


def test_concurrent_appends_each_get_their_own_unbroken_numbers(journal: Journal) -> None:
    lease = journal.acquire("a", TTL_MS)

    def append(number: int) -> tuple[int, range]:
        return number, journal.append(lease, entries(f"{number}.0", f"{number}.1")).seqs

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(append, range(64)))
    stored = texts(list(journal.read(1)))
    assert sorted(seq for _, seqs in answers for seq in seqs) == list(range(1, 129))
    for number, seqs in answers:
        assert [stored[seq - 1] for seq in seqs] == [f"{number}.0", f"{number}.1"]


def test_submissions_are_written_in_the_order_of_submission(journal: Journal) -> None:
    lease = journal.acquire("a", TTL_MS)

    async def submit_all() -> list[range]:
        futures = [journal.submit(lease, entries(str(number))) for number in range(200)]
        answers = await asyncio.gather(*(asyncio.wrap_future(future) for future in futures))
        return [answer.seqs for answer in answers]

    assert asyncio.run(submit_all()) == [range(seq, seq + 1) for seq in range(1, 201)]
    assert texts(list(journal.read(1))) == [str(number) for number in range(200)]


def test_what_no_store_can_keep_is_refused_before_it_reaches_one(journal: Journal) -> None:
    lease = journal.acquire("a", TTL_MS)
    with pytest.raises(InvariantError, match="an append of nothing"):
        journal.append(lease, [])
    with pytest.raises(InvariantError, match="kind"):
        journal.append(lease, [Entry(0, "", b"")])
    assert journal.head() == 0


# Claims: one answer per idempotency key


def test_a_second_submission_under_one_key_gets_the_first_answer(journal: Journal) -> None:
    lease = journal.acquire("a", TTL_MS)
    first = journal.append(lease, entries("job 1"), Fact("submit/k", b"job-1", 10))
    again = journal.append(lease, entries("job 2"), Fact("submit/k", b"job-2", 20))
    assert first.earlier is None
    assert again.earlier == Fact("submit/k", b"job-1", 10)
    assert len(again.seqs) == 0
    assert texts(list(journal.read(1))) == ["job 1"]


def test_of_many_concurrent_claims_of_one_key_exactly_one_is_written(journal: Journal) -> None:
    lease = journal.acquire("a", TTL_MS)
    futures = [
        journal.submit(lease, entries(str(number)), Fact("submit/k", str(number).encode(), 1))
        for number in range(20)
    ]
    answers = [future.result() for future in futures]
    assert [len(answer.seqs) for answer in answers] == [1] + 19 * [0]
    assert {answer.earlier.value for answer in answers if answer.earlier} == {b"0"}
    assert texts(list(journal.read(1))) == ["0"]


# Facts


def test_facts_are_kept_overwritten_and_forgotten_by_age(journal: Journal) -> None:
    lease = journal.acquire("a", TTL_MS)
    assert journal.fact("cluster") is None
    journal.put_fact(lease, Fact("cluster", b"one", 1))
    journal.put_fact(lease, Fact("cluster", b"two", 1))
    journal.append(lease, entries("x"), Fact("submit/old", b"", 5))
    journal.append(lease, entries("y"), Fact("submit/new", b"", 9))
    assert journal.forget_facts(lease, "submit/", before_ms=9) == 1
    assert journal.fact("cluster") == Fact("cluster", b"two", 1)
    assert journal.fact("submit/old") is None
    assert journal.fact("submit/new") == Fact("submit/new", b"", 9)


# The lease


def test_one_lease_at_a_time(store: Store) -> None:
    first, second = store.open(), store.open()
    lease = first.acquire("a", TTL_MS)
    with pytest.raises(LeaseHeldError, match="held by 'a'") as refused:
        second.acquire("b", TTL_MS)
    assert refused.value.lease == lease
    assert second.holder() == lease


def test_a_released_lease_is_free_at_once_and_its_old_holder_is_fenced(store: Store) -> None:
    first, second = store.open(), store.open()
    lease = first.acquire("a", TTL_MS)
    first.release(lease)
    assert second.holder() is None
    with pytest.raises(LeaseLostError, match="now free"):
        first.append(lease, entries("too late"))
    taken = second.acquire("b", TTL_MS)
    assert taken.token > lease.token
    first.release(lease)  # once more, and it must not free the new holder's
    assert second.holder() == taken


def test_a_master_that_lost_its_lease_can_never_write_again(store: Store) -> None:
    first, second = store.open(), store.open()
    old = first.acquire("a", SHORT_MS)
    first.append(old, entries("mine"))
    first.save_snapshot(old, Snapshot(1, 1, b"state"))
    store.pass_time(SHORT_MS)
    new = second.acquire("b", TTL_MS)
    for write in (
        lambda: first.append(old, entries("stale")),
        lambda: first.append(old, entries("stale"), Fact("submit/k", b"", 1)),
        lambda: first.put_fact(old, Fact("cluster", b"stale", 1)),
        lambda: first.forget_facts(old, "", 100),
        lambda: first.save_snapshot(old, Snapshot(1, 1, b"stale")),
        lambda: first.compact(old),
        lambda: first.renew(old),
    ):
        with pytest.raises(LeaseLostError, match="now held by 'b'"):
            write()
    second.append(new, entries("theirs"))
    assert texts(list(second.read(1))) == ["mine", "theirs"]
    assert second.fact("submit/k") is None
    assert second.fact("cluster") is None
    assert second.latest_snapshot() == Snapshot(1, 1, b"state")


def test_a_renewed_lease_outlives_its_first_term(store: Store) -> None:
    first, second = store.open(), store.open()
    lease = first.acquire("a", SHORT_MS)
    for _ in range(2):
        store.pass_time(SHORT_MS // 3)
        lease = first.renew(lease)
        with pytest.raises(LeaseHeldError):
            second.acquire("b", TTL_MS)
    first.append(lease, entries("still mine"))


def test_a_lease_that_ran_out_but_was_not_taken_can_still_be_used(store: Store) -> None:
    journal = store.open()
    lease = journal.acquire("a", SHORT_MS)
    store.pass_time(2 * SHORT_MS)
    journal.append(lease, entries("late, and alone"))
    assert journal.renew(lease).expires_ms > lease.expires_ms


def test_contenders_get_it_one_at_a_time(store: Store) -> None:
    journals = [store.open() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        futures = [
            pool.submit(journal.acquire, str(number), TTL_MS)
            for number, journal in enumerate(journals)
        ]
    failures = [future.exception() for future in futures]
    assert sum(failure is None for failure in failures) == 1
    assert all(failure is None or isinstance(failure, LeaseHeldError) for failure in failures)


# Snapshots and compaction


def test_the_latest_snapshot_is_the_one_with_the_highest_number(journal: Journal) -> None:
    lease = journal.acquire("a", TTL_MS)
    journal.append(lease, entries(*"abcdef"))
    for seq in (2, 6, 4):
        journal.save_snapshot(lease, Snapshot(seq, seq, f"after {seq}".encode()))
    assert journal.latest_snapshot() == Snapshot(6, 6, b"after 6")
    journal.save_snapshot(lease, Snapshot(6, 7, b"again"))
    assert journal.latest_snapshot() == Snapshot(6, 7, b"again")


def test_a_snapshot_of_records_that_are_not_there_is_refused(journal: Journal) -> None:
    lease = journal.acquire("a", TTL_MS)
    journal.append(lease, entries("a"))
    with pytest.raises(InvariantError, match="ends at 1"):
        journal.save_snapshot(lease, Snapshot(2, 0, b""))


def test_compaction_keeps_what_the_older_snapshot_needs(journal: Journal) -> None:
    lease = journal.acquire("a", TTL_MS)
    journal.append(lease, entries(*"abcdef"))
    journal.save_snapshot(lease, Snapshot(3, 0, b"3"))
    assert journal.compact(lease) == 0  # nothing to fall back on yet
    journal.save_snapshot(lease, Snapshot(5, 0, b"5"))
    assert journal.compact(lease) == 3
    assert journal.compact(lease) == 0
    assert texts(list(journal.read(4))) == ["d", "e", "f"]
    with pytest.raises(JournalCompactedError, match="up to 3"):
        list(journal.read(3))
    assert journal.append(lease, entries("g")).seqs == range(7, 8)
    assert journal.head() == 7
