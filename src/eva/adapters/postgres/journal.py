"""PostgreSQL under the journal: any number of masters may point at it, one holds the lease.

Leases go by the database's clock, so that two machines need not agree on the time. A broken
connection is mended and the transaction run again, for as long as `patience_ms`. The one hard
case is a connection that breaks in a commit: whether it took effect is then read off the server.
Each process has a row in `eva_writers` with the number of its last transaction, written in that
transaction; asking for the row with a lock also waits for whatever the old connection left open.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from eva.adapters.postgres.failures import is_passing, typed_error
from eva.adapters.sql_journal import SqlJournal
from eva.adapters.sql_session import SCHEMA, SCHEMA_VERSION, Row, Transaction
from eva.model.errors import InputError
from eva.model.units import MS_PER_SECOND
from eva.ports.journal import JournalVersionError

T = TypeVar("T")
Connection = psycopg.Connection[TupleRow]

SCHEMA_LOCK = 0x45564131  # one process at a time makes the tables
FIRST_PAUSE_MS = 50
LONGEST_PAUSE_MS = 1_000
# A master that stops in the middle of a transaction (a paused machine) must not keep its standby
# out: the server ends that session. The waits of everyone else are bounded below our patience.
SETTINGS = (
    "SET synchronous_commit = on",
    "SET lock_timeout = '4s'",
    "SET statement_timeout = '30s'",
    "SET idle_in_transaction_session_timeout = '5s'",
)
# A server that went away without a word is noticed within seconds, unless the URL says otherwise.
CONNECT = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}


def open_journal(url: str, patience_ms: int = 10_000) -> SqlJournal:
    """The journal in the database of this URL; its tables are made if they do not exist."""
    return SqlJournal(PostgresDatabase(url, patience_ms))


@dataclass(frozen=True, slots=True)
class _Transaction:
    connection: Connection

    def rows(self, sql: str, *parameters: object) -> list[Row]:
        return self.connection.execute(_words(sql), parameters).fetchall()

    def run(self, sql: str, *parameters: object) -> int:
        return self.connection.execute(_words(sql), parameters).rowcount

    def many(self, sql: str, parameters: Sequence[Sequence[object]]) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(_words(sql), parameters)


def _words(sql: str) -> bytes:
    """Our statements write parameters as `?` and hold no other question or percent mark."""
    return sql.replace("?", "%s").encode()


@dataclass(frozen=True, slots=True)
class _Committing(Generic[T]):
    """A transaction whose commit was asked for, and what it is to answer if it took effect."""

    number: int
    result: T


class PostgresDatabase:
    """`eva.adapters.sql_session.Database` over a server."""

    for_update = " FOR UPDATE"

    def __init__(self, url: str, patience_ms: int) -> None:
        parts = _parse(url)
        self._address = make_conninfo(**{**CONNECT, **parts})
        self.name = _public_name(parts)
        self._patience_ms = patience_ms
        self._id = uuid.uuid4().hex
        self._number = 0
        self._closing = threading.Event()
        self._reading = threading.Lock()
        self._reader: Connection | None = None
        self._writer: Connection | None = None
        with ExitStack() as unless_ready:
            unless_ready.callback(lambda: self._drop(self._writer))
            try:
                self._writer = self._connect()
                with self._writer.transaction():
                    _prepare(self._writer, self.name)
                self._writer.execute("INSERT INTO eva_writers VALUES (%s, 0)", [self._id])
            except psycopg.Error as error:
                raise typed_error(error, self.name) from error
            unless_ready.pop_all()

    def write(self, work: Callable[[Transaction], T]) -> T:
        self._number += 1
        asked: list[_Committing[T]] = []  # at most one: the attempt whose commit was lost

        def attempt() -> T:
            self._writer = connection = self._alive(self._writer)
            if asked:
                committing = asked.pop()
                try:
                    took_effect = self._took_effect(connection, committing.number)
                except psycopg.Error:
                    asked.append(committing)
                    raise
                if took_effect:
                    return committing.result
            return self._transact(connection, work, asked)

        return self._persist(attempt, lambda: bool(asked), lambda: self._writer)

    def read(self, work: Callable[[Transaction], T]) -> T:
        def attempt() -> T:
            self._reader = connection = self._alive(self._reader)
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                return work(_Transaction(connection))

        with self._reading:
            return self._persist(attempt, lambda: False, lambda: self._reader)

    def now_ms(self, tx: Transaction) -> int:
        ((now,),) = tx.rows("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        return int(now)

    def show_alive(self, token: int) -> None:
        """A server cannot tell a dead master from one whose network is down: the clock decides."""

    def show_gone(self, token: int) -> None:
        """See `show_alive`."""

    def is_gone(self, token: int) -> bool:  # noqa: ARG002  see `show_alive`
        return False

    def close(self) -> None:
        self._closing.set()
        with self._reading:
            self._drop(self._reader)
        if self._writer is not None and not self._writer.closed:
            with suppress(psycopg.Error):  # a row left behind harms nobody
                self._writer.execute("DELETE FROM eva_writers WHERE id = %s", [self._id])
            self._drop(self._writer)

    def _persist(
        self,
        attempt: Callable[[], T],
        in_doubt: Callable[[], bool],
        connection: Callable[[], Connection | None],
    ) -> T:
        """Attempt until it works, the failure is not a passing one, or patience runs out."""
        deadline = time.monotonic() + self._patience_ms / MS_PER_SECOND
        pause_ms = FIRST_PAUSE_MS
        while True:
            try:
                return attempt()
            except psycopg.Error as error:
                # Whatever state that connection is in, a fresh one is in a better one.
                self._drop(connection())
                late = time.monotonic() >= deadline or self._closing.is_set()
                if late or not is_passing(error):
                    raise typed_error(error, self.name, in_doubt=in_doubt()) from error
            self._closing.wait(pause_ms / MS_PER_SECOND)
            pause_ms = min(2 * pause_ms, LONGEST_PAUSE_MS)

    def _transact(
        self,
        connection: Connection,
        work: Callable[[Transaction], T],
        asked: list[_Committing[T]],
    ) -> T:
        try:
            connection.execute("BEGIN")
            result = work(_Transaction(connection))
            connection.execute(
                "UPDATE eva_writers SET number = %s WHERE id = %s", [self._number, self._id]
            )
            asked.append(_Committing(self._number, result))
            connection.execute("COMMIT")
        except psycopg.Error:
            if not connection.broken:  # the server said no: there is no doubt
                asked.clear()
            raise
        except BaseException:
            self._drop(connection)
            raise
        asked.clear()
        return result

    def _took_effect(self, connection: Connection, number: int) -> bool:
        # The lock waits for the session that the broken connection left behind, if it still runs.
        row = connection.execute(
            "SELECT number FROM eva_writers WHERE id = %s FOR UPDATE", [self._id]
        ).fetchone()
        return row is not None and row[0] == number

    def _alive(self, connection: Connection | None) -> Connection:
        return self._connect() if connection is None or connection.closed else connection

    def _connect(self) -> Connection:
        connection = psycopg.connect(self._address, autocommit=True)
        for setting in SETTINGS:
            connection.execute(setting)
        return connection

    def _drop(self, connection: Connection | None) -> None:
        if connection is not None:
            connection.close()


def _prepare(connection: Connection, name: str) -> None:
    """Make the tables in an empty database; refuse tables that are newer than we are."""
    tx = _Transaction(connection)
    tx.rows("SELECT pg_advisory_xact_lock(?)", SCHEMA_LOCK)
    ((existing,),) = tx.rows("SELECT to_regclass('eva_schema')::text")
    if existing is None:
        tx.run("CREATE TABLE eva_schema (version BIGINT NOT NULL)")
        tx.run("INSERT INTO eva_schema VALUES (?)", SCHEMA_VERSION)
        tx.run("CREATE TABLE eva_writers (id TEXT PRIMARY KEY, number BIGINT NOT NULL)")
        for statement in SCHEMA:
            tx.run(statement.format(integer="BIGINT", blob="BYTEA"))
        return
    ((version,),) = tx.rows("SELECT version FROM eva_schema")
    if version > SCHEMA_VERSION:
        raise JournalVersionError(
            f"{name} was written by a newer Eva: its schema is {version}, this Eva reads up to "
            f"{SCHEMA_VERSION}. Upgrade Eva, or restore the copy made before the upgrade"
        )


def _parse(url: str) -> dict[str, str]:
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise InputError.single("--store", f"not a PostgreSQL URL: {error}") from error
    return {key: str(value) for key, value in parts.items() if value is not None}


def _public_name(parts: dict[str, str]) -> str:
    """The address without its password, for messages."""
    host, port = parts.get("host", "localhost"), parts.get("port", "5432")
    return f"postgresql://{parts.get('user', '')}@{host}:{port}/{parts.get('dbname', '')}"
