"""SQLite under the journal: one writing connection, one reading connection, WAL, fsync per commit.

`synchronous=FULL` makes SQLite sync the write-ahead log before a commit returns, so an answered
append survives a power cut, not only a killed process. Writers of two processes are serialised by
SQLite itself; each write transaction takes the lock when it begins, so that what it reads first
(the head) is still true when it commits.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from eva.adapters.sql_journal import SqlJournal
from eva.adapters.sql_session import SCHEMA, SCHEMA_VERSION, Row, Transaction
from eva.adapters.sqlite.liveness import Liveness
from eva.model.errors import EvaError
from eva.model.units import MS_PER_SECOND
from eva.ports.journal import (
    JournalAccessError,
    JournalCorruptError,
    JournalFullError,
    JournalUnreachableError,
    JournalVersionError,
)

T = TypeVar("T")

APPLICATION_ID = 0x45564131  # "EVA1": tells our file from any other database
BUSY_S = 5.0  # how long to wait for another process's transaction
WAL_LIMIT_BYTES = 64 * 1024 * 1024  # the log is cut back to this after a burst
PROBE_BYTES = 64 * 1024  # written to learn whether an I/O error was for want of space
NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
SILENT_ABOUT_SPACE = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}


def wall_clock_ms() -> int:
    return int(time.time() * MS_PER_SECOND)


def open_journal(path: Path, now_ms: Callable[[], int] = wall_clock_ms) -> SqlJournal:
    """The journal in this file, made if it does not exist. Leases go by `now_ms`."""
    return SqlJournal(SqliteDatabase(path, now_ms))


@dataclass(frozen=True, slots=True)
class _Transaction:
    connection: sqlite3.Connection

    def rows(self, sql: str, *parameters: object) -> list[Row]:
        return self.connection.execute(sql, parameters).fetchall()

    def run(self, sql: str, *parameters: object) -> int:
        return self.connection.execute(sql, parameters).rowcount

    def many(self, sql: str, parameters: Sequence[Sequence[object]]) -> None:
        self.connection.executemany(sql, parameters)


class SqliteDatabase:
    """`eva.adapters.sql_session.Database` over one file."""

    for_update = ""  # BEGIN IMMEDIATE locks the whole file

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        self.name = str(path)
        self._path = path
        self._now_ms = now_ms
        self._liveness = Liveness(path)
        self._reading = threading.Lock()
        with ExitStack() as unless_ready:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch(mode=0o600)  # job files are in it; SQLite gives its log the same mode
                self._writer = unless_ready.enter_context(closing(self._connect()))
                _prepare(self._writer, self.name)
                _sync_folder(path.parent)
                self._reader = unless_ready.enter_context(closing(self._connect()))
            except (sqlite3.Error, OSError) as error:
                raise self._typed(error) from error
            unless_ready.pop_all()

    def write(self, work: Callable[[Transaction], T]) -> T:
        try:
            return _transact(self._writer, "BEGIN IMMEDIATE", work)
        except (sqlite3.Error, OSError) as error:
            raise self._typed(error) from error

    def read(self, work: Callable[[Transaction], T]) -> T:
        try:
            with self._reading:
                return _transact(self._reader, "BEGIN", work)
        except sqlite3.Error as error:
            raise self._typed(error) from error

    def now_ms(self, tx: Transaction) -> int:  # noqa: ARG002  the clock of the machine will do
        return self._now_ms()

    def show_alive(self, token: int) -> None:
        self._liveness.show(token)

    def show_gone(self, token: int) -> None:
        self._liveness.retract(token)

    def is_gone(self, token: int) -> bool:
        return self._liveness.is_gone(token)

    def close(self) -> None:
        with self._reading:
            self._reader.close()
        self._writer.close()
        self._liveness.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
        return connection

    def _typed(self, error: sqlite3.Error | OSError) -> EvaError:
        return typed_error(error, self._path)


def _transact(connection: sqlite3.Connection, begin: str, work: Callable[[Transaction], T]) -> T:
    connection.execute(begin)
    try:
        result = work(_Transaction(connection))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some failures roll back by themselves
            connection.execute("ROLLBACK")
        raise
    return result


def _prepare(connection: sqlite3.Connection, name: str) -> None:
    """Make the tables in an empty file; refuse a file that is not ours, or newer than we are."""

    def work(tx: Transaction) -> None:
        ((version,),) = tx.rows("PRAGMA user_version")
        ((application,),) = tx.rows("PRAGMA application_id")
        ((tables,),) = tx.rows("SELECT COUNT(*) FROM sqlite_master")
        if tables == 0:
            for statement in SCHEMA:
                tx.run(statement.format(integer="INTEGER", blob="BLOB"))
            tx.run(f"PRAGMA application_id = {APPLICATION_ID}")
            tx.run(f"PRAGMA user_version = {SCHEMA_VERSION}")
        elif application != APPLICATION_ID:
            raise JournalAccessError(
                f"{name} is a database of something else: name another file for the journal"
            )
        elif version > SCHEMA_VERSION:
            raise JournalVersionError(
                f"{name} was written by a newer Eva: its schema is {version}, this Eva reads up to "
                f"{SCHEMA_VERSION}. Upgrade Eva, or restore the copy made before the upgrade"
            )

    _transact(connection, "BEGIN IMMEDIATE", work)


def typed_error(error: sqlite3.Error | OSError, path: Path) -> EvaError:
    """What the reader of this failure can do about it."""
    if isinstance(error, OSError):
        return _full(path) if error.errno in NO_SPACE else _no_access(path, error)
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary == sqlite3.SQLITE_FULL or (primary in SILENT_ABOUT_SPACE and not _has_space(path)):
        return _full(path)
    undecodable = primary is None and isinstance(error, sqlite3.OperationalError)
    if undecodable or primary in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return JournalCorruptError(
            f"{path} is damaged ({error}): restore it from a backup, and check the disk under it"
        )
    if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return JournalUnreachableError(
            f"{path} has been locked by another process for {BUSY_S:.0f} s ({error}): try again, "
            "and look for a process that stopped while it was writing"
        )
    return _no_access(path, error)


def _has_space(path: Path) -> bool:
    """Try what just failed: SQLite says `I/O error` for a quota, a limit, or a full tmpfs alike.

    A nameless file is made as long as ours are, and a little longer.
    """
    longest = max((file.stat().st_size for file in path.parent.glob(f"{path.name}*")), default=0)
    try:
        with tempfile.TemporaryFile(dir=path.parent) as probe:
            os.pwrite(probe.fileno(), bytes(PROBE_BYTES), longest)
    except OSError as error:
        return error.errno not in NO_SPACE
    return True


def _full(path: Path) -> JournalFullError:
    return JournalFullError(
        f"no space is left for {path}: free some on its disk, or raise the quota; nothing of this "
        "append was kept, and the next one works as soon as there is space"
    )


def _no_access(path: Path, error: Exception) -> JournalAccessError:
    return JournalAccessError(
        f"{path} cannot be opened or written ({error}): check the path, its permissions and the "
        "disk under it"
    )


def _sync_folder(folder: Path) -> None:
    """Make the file's name durable too: SQLite syncs what is in it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
