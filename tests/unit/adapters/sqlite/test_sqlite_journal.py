"""What is particular to the SQLite journal: files, versions, damage, a full disk, liveness."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eva.adapters.sqlite import open_journal
from eva.adapters.sqlite.journal import SqliteDatabase
from eva.ports.journal import (
    Entry,
    Journal,
    JournalAccessError,
    JournalCorruptError,
    JournalFullError,
    JournalUnreachableError,
    JournalVersionError,
    Lease,
    LeaseHeldError,
    LeaseLostError,
    Snapshot,
)
from tests.support.requirements import require

TTL_MS = 60_000


@contextmanager
def opened(path: Path) -> Iterator[Journal]:
    journal = open_journal(path)
    try:
        yield journal
    finally:
        journal.close()


def filled(path: Path, *texts: str) -> None:
    with opened(path) as journal:
        lease = journal.acquire("a", TTL_MS)
        journal.append(lease, [Entry(0, "said", text.encode()) for text in texts])
        journal.release(lease)


def alter(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_every_commit_is_synced(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "j.db", lambda: 0)
    assert database.write(lambda tx: tx.rows("PRAGMA journal_mode")) == [("wal",)]
    assert database.write(lambda tx: tx.rows("PRAGMA synchronous")) == [(2,)]  # FULL
    database.close()


def test_the_folder_is_made_and_the_journal_outlives_its_process(tmp_path: Path) -> None:
    path = tmp_path / "state" / "deep" / "j.db"
    filled(path, "a", "b")
    with opened(path) as journal:
        assert [record.payload for record in journal.read(1)] == [b"a", b"b"]


# What cannot be used says why


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    filled(path, "a")
    alter(path, "PRAGMA user_version = 7")
    with pytest.raises(JournalVersionError, match=r"schema is 7.*Upgrade Eva"):
        open_journal(path)
    alter(path, "PRAGMA user_version = 1")
    with opened(path) as journal:
        assert journal.head() == 1


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    alter(tmp_path / "other.db", "CREATE TABLE photos (id INTEGER)")
    with pytest.raises(JournalAccessError, match="something else"):
        open_journal(tmp_path / "other.db")


def test_a_file_that_is_no_database_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "j.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(JournalCorruptError, match=r"j\.db is damaged"):
        open_journal(tmp_path / "j.db")


def test_a_path_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalAccessError, match="check the path"):
        open_journal(tmp_path / "file" / "j.db")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("UPDATE eva_records SET payload = x'42' WHERE seq = 2", "does not verify at record 2"),
        ("UPDATE eva_records SET payload = 'b' WHERE seq = 2", "does not verify at record 2"),
        ("UPDATE eva_records SET time_ms = 9 WHERE seq = 3", "does not verify at record 3"),
        ("DELETE FROM eva_records WHERE seq = 2", "holds 2 of the 3 records"),
        ("DELETE FROM eva_records WHERE seq = 3", "holds 2 of the 3 records"),
    ],
)
def test_damaged_records_are_found_on_reading(tmp_path: Path, damage: str, message: str) -> None:
    path = tmp_path / "j.db"
    filled(path, "a", "b", "c")
    alter(path, damage)
    with opened(path) as journal, pytest.raises(JournalCorruptError, match=message):
        list(journal.read(1))


def test_a_damaged_snapshot_falls_back_to_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    with opened(path) as journal:
        lease = journal.acquire("a", TTL_MS)
        journal.append(lease, [Entry(0, "said", b"")] * 4)
        journal.save_snapshot(lease, Snapshot(2, 0, b"two"))
        journal.save_snapshot(lease, Snapshot(4, 0, b"four"))
        journal.compact(lease)
    alter(path, "UPDATE eva_snapshots SET state = x'00' WHERE seq = 4")
    with opened(path) as journal:
        assert journal.latest_snapshot() == Snapshot(2, 0, b"two")
        assert [record.seq for record in journal.read(3)] == [3, 4]
    alter(path, "UPDATE eva_snapshots SET state = x'00'")
    with opened(path) as journal, pytest.raises(JournalCorruptError, match="none of the 2"):
        journal.latest_snapshot()


def test_a_file_locked_by_another_process_is_a_reason_to_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eva.adapters.sqlite.journal.BUSY_S", 0.05)
    path = tmp_path / "j.db"
    with opened(path) as journal:
        lease = journal.acquire("a", TTL_MS)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalUnreachableError, match="locked by another process"):
            journal.append(lease, [Entry(0, "said", b"")])
        other.execute("ROLLBACK")
        other.close()
        assert journal.append(lease, [Entry(0, "said", b"")]).seqs == range(1, 2)


# A full disk


def append_until_full(journal: Journal, lease: Lease) -> int:
    """How many records were acknowledged before the disk was full."""
    for acknowledged in range(10_000):
        try:
            journal.append(lease, [Entry(0, "said", bytes([acknowledged % 256]) * 20_000)])
        except JournalFullError:
            return acknowledged
    pytest.fail("the disk never got full")


def check_usable_again(journal: Journal, lease: Lease, acknowledged: int) -> None:
    assert journal.append(lease, [Entry(0, "said", b"after")]).seqs[0] == acknowledged + 1
    stored = list(journal.read(1))
    assert [record.payload[:1] for record in stored[:-1]] == [
        bytes([number % 256]) for number in range(acknowledged)
    ]
    assert stored[-1].payload == b"after"


def test_a_full_file_system_loses_nothing_and_is_survived(tmp_path: Path) -> None:
    require(os.geteuid() == 0, "root, to mount a small file system")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "none", disk], check=False, capture_output=True
    )
    require(mounted.returncode == 0, "the right to mount a tmpfs")
    try:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(500_000))
        with opened(disk / "j.db") as journal:
            lease = journal.acquire("a", TTL_MS)
            acknowledged = append_until_full(journal, lease)
            assert acknowledged > 0
            with pytest.raises(
                JournalFullError, match="free some"
            ):  # and so it stays, until there is space
                journal.append(lease, [Entry(0, "said", bytes(20_000))])
            assert len(list(journal.read(1))) == acknowledged  # reading still works
            ballast.unlink()
            check_usable_again(journal, lease, acknowledged)
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_quota_on_the_file_loses_nothing_and_is_survived(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with opened(tmp_path / "j.db") as journal:
        lease = journal.acquire("a", TTL_MS)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
        try:
            acknowledged = append_until_full(journal, lease)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert acknowledged > 0
        check_usable_again(journal, lease, acknowledged)


# Killed and contended


@contextmanager
def writer_process(path: Path, owner: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.journal_writer", str(path), owner],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def acknowledged_before_kill(process: subprocess.Popen[str], wanted: int) -> dict[int, bytes]:
    """What the process said until it was killed, right after its `wanted`-th answer."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if len(lines) == wanted:
            process.kill()  # what it still says before it dies is read too
    whole = [line.split() for line in lines if line.endswith("\n")]
    return {int(seq): text.encode() for seq, text in whole if seq != "0"}


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    acknowledged: dict[int, bytes] = {}
    for life, wanted in enumerate([1, 2, 37, 150, 400]):
        # Each life takes over at once from a process that died holding a long lease.
        with writer_process(path, f"life-{life}") as process:
            acknowledged |= acknowledged_before_kill(process, wanted)
    with opened(path) as journal:
        stored = {record.seq: record.payload for record in journal.read(1)}
    assert len(acknowledged) > 500
    assert {seq: stored.get(seq) for seq in acknowledged} == acknowledged
    batches: dict[bytes, set[int]] = {}
    for payload in stored.values():  # a batch is there with all its parts, or not at all
        name, number, part = payload.rstrip(b".").rsplit(b"-", 2)
        batches.setdefault(name + b"-" + number, set()).add(int(part))
    for batch, parts in batches.items():
        assert parts == set(range(1 + int(batch.rsplit(b"-", 1)[1]) % 3))


def test_two_processes_contend_for_the_lease_and_the_dead_one_gives_way(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    with opened(path) as journal, writer_process(path, "other") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0 holding\n"
        with pytest.raises(LeaseHeldError, match="held by 'other'"):
            journal.acquire("me", TTL_MS)
        process.kill()
        process.wait()
        lease = journal.acquire("me", TTL_MS)  # though its lease had minutes to go
        journal.append(lease, [Entry(0, "said", b"mine-0-0")])


def test_a_hung_holder_is_overtaken_when_its_time_is_up_and_fenced_when_it_wakes(
    tmp_path: Path,
) -> None:
    now_ms = 0
    hung, standby = (open_journal(tmp_path / "j.db", lambda: now_ms) for _ in range(2))
    old = hung.acquire("hung", 1_000)  # it lives: its proof stands, but it does not renew
    now_ms = 999
    with pytest.raises(LeaseHeldError):
        standby.acquire("standby", 1_000)
    now_ms = 1_000
    new = standby.acquire("standby", 1_000)
    with pytest.raises(LeaseLostError):
        hung.append(old, [Entry(0, "said", b"")])
    with pytest.raises(LeaseHeldError):  # the new holder left proof of its own
        hung.acquire("hung", 1_000)
    standby.append(new, [Entry(0, "said", b"")])
    for journal in (hung, standby):
        journal.close()


def test_old_proofs_of_life_are_tidied_away(tmp_path: Path) -> None:
    with opened(tmp_path / "j.db") as journal:
        for _ in range(6):
            journal.release(journal.acquire("a", TTL_MS))
    assert len(list(tmp_path.glob("*-lease-*"))) <= 2


def test_only_its_owner_reads_the_journal(tmp_path: Path) -> None:
    """Job files are in it, and the folder may be one that was there before, open to all."""
    before = os.umask(0o022)
    try:
        with opened(tmp_path / "journal.db") as journal:
            journal.acquire("me", TTL_MS)
            modes = {each.name: each.stat().st_mode & 0o077 for each in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes["journal.db"] == 0
    assert not any(modes.values()), modes
