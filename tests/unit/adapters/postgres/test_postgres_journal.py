"""What is particular to the PostgreSQL journal: a server that goes away, comes back, or is full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import psycopg
import pytest

from eva.adapters.postgres import open_journal
from eva.adapters.postgres.failures import typed_error
from eva.adapters.postgres.journal import Connection, PostgresDatabase
from eva.adapters.sql_journal import SqlJournal
from eva.model.errors import InputError
from eva.ports.journal import (
    Entry,
    Journal,
    JournalAccessError,
    JournalCorruptError,
    JournalFullError,
    JournalUnreachableError,
    JournalVersionError,
)
from tests.support.postgres import PostgresServer

TTL_MS = 60_000


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.new_schema()


@contextmanager
def opened(url: str, patience_ms: int = 10_000) -> Iterator[Journal]:
    journal = open_journal(url, patience_ms)
    try:
        yield journal
    finally:
        journal.close()


def said(*texts: str) -> list[Entry]:
    return [Entry(0, "said", text.encode()) for text in texts]


def stored(journal: Journal) -> list[str]:
    return [record.payload.decode() for record in journal.read(1)]


# What cannot be used says why, and never shows the password


def test_a_wrong_password_is_for_an_operator(postgres_server: PostgresServer) -> None:
    with pytest.raises(JournalAccessError, match="check the user") as refused:
        open_journal(postgres_server.url("postgres", password="wrong-secret"))
    assert "wrong-secret" not in str(refused.value)


def test_a_missing_database_is_for_an_operator(postgres_server: PostgresServer) -> None:
    with pytest.raises(JournalAccessError, match='"nowhere" does not exist'):
        open_journal(postgres_server.url("nowhere"))


def test_a_server_that_is_not_there_is_a_reason_to_try_again() -> None:
    with pytest.raises(JournalUnreachableError, match="check that the server runs") as refused:
        open_journal("postgresql://eva@127.0.0.1:1/eva")
    assert not refused.value.in_doubt


def test_what_is_no_url_is_an_input_error() -> None:
    with pytest.raises(InputError, match="not a PostgreSQL URL"):
        open_journal("postgresql://host/eva?colour=red")


def test_a_newer_schema_is_refused(postgres_server: PostgresServer, url: str) -> None:
    open_journal(url).close()
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE eva_schema SET version = 9")
    with pytest.raises(JournalVersionError, match=r"schema is 9.*Upgrade Eva"):
        open_journal(url)


def test_a_damaged_record_is_found_on_reading(url: str) -> None:
    with opened(url) as journal:
        journal.append(journal.acquire("a", TTL_MS), said("one", "two"))
        with psycopg.connect(url) as connection:
            connection.execute("UPDATE eva_records SET payload = 'x' WHERE seq = 2")
        with pytest.raises(JournalCorruptError, match="does not verify at record 2"):
            list(journal.read(1))


def test_a_full_server_is_told_apart() -> None:
    full = typed_error(psycopg.errors.DiskFull("could not extend file"), "db")
    assert isinstance(full, JournalFullError)
    assert "could not extend file" in str(full)


# Durability and reconnecting


def test_commits_are_synchronous_whatever_the_server_prefers(
    postgres_server: PostgresServer, url: str
) -> None:
    postgres_server.execute("ALTER ROLE eva SET synchronous_commit = off")
    try:
        database = PostgresDatabase(url, 1_000)
        assert database.write(lambda tx: tx.rows("SHOW synchronous_commit")) == [("on",)]
        database.close()
    finally:
        postgres_server.execute("ALTER ROLE eva RESET synchronous_commit")


def test_cut_connections_are_mended_unseen(postgres_server: PostgresServer, url: str) -> None:
    with opened(url) as journal:
        lease = journal.acquire("a", TTL_MS)
        for text in ("one", "two", "three"):
            journal.append(lease, said(text))
            postgres_server.end_sessions()
        assert stored(journal) == ["one", "two", "three"]


def test_a_restarted_server_is_waited_for_and_nothing_is_lost(
    postgres_server: PostgresServer, url: str
) -> None:
    with opened(url, patience_ms=30_000) as journal:
        lease = journal.acquire("a", TTL_MS)
        journal.append(lease, said("before"))
        postgres_server.stop("immediate")  # as a crash: recovers from its log
        during = journal.submit(lease, said("during"))
        postgres_server.start()
        assert during.result(30).seqs == range(2, 3)
        assert stored(journal) == ["before", "during"]
        assert journal.renew(lease).token == lease.token


def test_patience_has_an_end(postgres_server: PostgresServer, url: str) -> None:
    with opened(url, patience_ms=200) as journal:
        lease = journal.acquire("a", TTL_MS)
        postgres_server.stop("fast")
        try:
            with pytest.raises(JournalUnreachableError, match="does not answer") as failed:
                journal.append(lease, said("never"))
            assert not failed.value.in_doubt
            with pytest.raises(JournalUnreachableError):
                list(journal.read(1))
        finally:
            postgres_server.start()
        assert journal.append(lease, said("now")).seqs == range(1, 2)


class LossyConnection:
    """A connection that breaks at COMMIT, before or after the server has seen it."""

    def __init__(self, inner: Connection, *, arrives: bool, then: Callable[[], None]) -> None:
        self._inner = inner
        self._arrives = arrives
        self._then = then

    def execute(self, query: Any, parameters: Any = None) -> object:
        if query == "COMMIT":
            if self._arrives:
                self._inner.execute("COMMIT")
            self._inner.close()
            self._then()
            raise psycopg.OperationalError("the connection was lost")
        return self._inner.execute(query, parameters)

    def __getattr__(self, name: str) -> object:
        return True if name == "broken" else getattr(self._inner, name)


def lose_the_next_commit(
    database: PostgresDatabase, *, arrives: bool, then: Callable[[], None] = lambda: None
) -> None:
    assert database._writer is not None
    database._writer = cast(
        "Connection", LossyConnection(database._writer, arrives=arrives, then=then)
    )


@pytest.mark.parametrize("arrives", [True, False])
def test_a_commit_whose_answer_was_lost_is_neither_repeated_nor_forgotten(
    url: str, *, arrives: bool
) -> None:
    database = PostgresDatabase(url, 10_000)
    journal = SqlJournal(database)
    lease = journal.acquire("a", TTL_MS)
    lose_the_next_commit(database, arrives=arrives)
    assert journal.append(lease, said("once")).seqs == range(1, 2)
    assert stored(journal) == ["once"]
    journal.close()


def test_an_outcome_that_cannot_be_learned_is_said_to_be_in_doubt(
    postgres_server: PostgresServer, url: str
) -> None:
    database = PostgresDatabase(url, 100)
    journal = SqlJournal(database)
    lease = journal.acquire("a", TTL_MS)
    lose_the_next_commit(database, arrives=True, then=lambda: postgres_server.stop("immediate"))
    try:
        with pytest.raises(JournalUnreachableError, match="outcome is not known") as failed:
            journal.append(lease, said("perhaps"))
        assert failed.value.in_doubt
    finally:
        postgres_server.start()
    assert stored(journal) == ["perhaps"]
    journal.close()


def test_a_standby_is_not_kept_out_by_a_master_that_froze_in_a_transaction(url: str) -> None:
    """The frozen session holds the head's row; the server ends it, and the standby goes on."""
    with opened(url, patience_ms=20_000) as standby:
        with psycopg.connect(url, autocommit=True) as frozen:
            frozen.execute("SET idle_in_transaction_session_timeout = '300ms'")
            frozen.execute("BEGIN")
            frozen.execute("SELECT * FROM eva_head FOR UPDATE")
            lease = standby.acquire("standby", TTL_MS)
            with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
                frozen.execute("COMMIT")
        assert standby.append(lease, said("on")).seqs == range(1, 2)
