"""The book of attempts: what was asked of EC2 for each intent, written before it is asked.

An intent may be refused in one zone and granted in the next. If the reply to the second attempt is
lost in a crash, only this book knows that it was the second: asking for the first again could get
another instance. So every attempt is on disk before its call, its outcome after it, and none is
begun while the one before has no outcome. It also remembers the instance's name at EC2, which is
proof of it while EC2 does not show it yet, and again when EC2 has forgotten it.

The book belongs on the same disk as the journal. If it is lost, what EC2 shows is believed instead,
once it has had time to show everything (`complete_from_ms`).
"""

from __future__ import annotations

import contextlib
import enum
import sqlite3
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from eva.model.errors import OperatorError
from eva.model.ids import InstanceId
from eva.model.units import MS_PER_HOUR

_KEPT_MS = (
    30 * 24 * MS_PER_HOUR
)  # EC2 forgets tokens a day after the instance, instances in an hour
_SCHEMA = """
CREATE TABLE IF NOT EXISTS attempts (
    instance TEXT NOT NULL, number INTEGER NOT NULL, type TEXT NOT NULL, zone TEXT NOT NULL,
    spot INTEGER NOT NULL, outcome TEXT NOT NULL, asked_ms INTEGER, ref TEXT NOT NULL,
    ended_ms INTEGER, reason TEXT NOT NULL, begun_ms INTEGER NOT NULL,
    PRIMARY KEY (instance, number)
) STRICT;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
"""
_COLUMNS = "instance, number, type, zone, spot, outcome, asked_ms, ref, ended_ms, reason, begun_ms"


class Outcome(enum.Enum):
    OPEN = "open"
    GOT = "got"
    NONE = "none"  # refused, or nothing came of it


@dataclass(frozen=True, slots=True)
class Attempt:
    """`asked_ms` is when it was last asked for with an answer that is not known; None is never."""

    instance: InstanceId
    number: int
    type: str
    zone: str
    spot: bool
    outcome: Outcome
    asked_ms: int | None
    ref: str = ""
    ended_ms: int | None = None
    reason: str = ""
    begun_ms: int = 0


class AttemptBook:
    """On disk. Short calls, from any thread.

    `settle_ms` is for how long a book that was just made is not believed to be all there is; a
    cluster that is new as well has nothing to wait for, so its maker may give 0.
    """

    def __init__(self, path: Path, now_ms: int, settle_ms: int) -> None:
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._base = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA synchronous = FULL")
            self._base.executescript(_SCHEMA)
            self._base.execute(
                "INSERT OR IGNORE INTO facts VALUES ('complete_from_ms', ?)",
                (now_ms + settle_ms if settle_ms else 0,),
            )
            self._forget(now_ms - _KEPT_MS)
        except (OSError, sqlite3.Error) as error:
            raise OperatorError(
                f"the book of launches {path} cannot be opened ({error}): check its permissions "
                "and the space on its disk"
            ) from error

    @property
    def complete_from_ms(self) -> int:
        """Since when EC2 shows all that this book does not know of; 0: there is no such thing."""
        with self._lock:
            row = self._base.execute("SELECT value FROM facts WHERE name = 'complete_from_ms'")
            return int(row.fetchone()[0])

    def last(self, instance: InstanceId) -> Attempt | None:
        with self._lock:
            row = self._base.execute(
                f"SELECT {_COLUMNS} FROM attempts WHERE instance = ? "  # noqa: S608  a constant
                "ORDER BY number DESC LIMIT 1",
                (instance,),
            ).fetchone()
        return None if row is None else _attempt(row)

    def rented(self) -> list[Attempt]:
        """Those that got an instance of which no end is known."""
        with self._lock:
            rows = self._base.execute(
                f"SELECT {_COLUMNS} FROM attempts "  # noqa: S608  a constant
                "WHERE outcome = 'got' AND ended_ms IS NULL ORDER BY instance"
            ).fetchall()
        return [_attempt(row) for row in rows]

    def draft(
        self, instance: InstanceId, type_: str, zone: str, *, spot: bool, now_ms: int
    ) -> Attempt:
        """The next attempt for an intent, not in the book before it is asked for or granted.

        An open attempt that was only written down would be asked for after a crash, also where
        it was meant to record an instance that is there.
        """
        before = self.last(instance)
        number = 1 if before is None else before.number + 1
        return Attempt(
            instance, number, type_, zone, spot, Outcome.OPEN, asked_ms=None, begun_ms=now_ms
        )

    def ask(self, attempt: Attempt, now_ms: int) -> Attempt:
        """It is about to be asked for; from here on it may have happened."""
        return self._write(replace(attempt, asked_ms=now_ms))

    def unask(self, attempt: Attempt) -> Attempt:
        """The asking had no effect: all is as `attempt` was before."""
        return self._write(attempt)

    def got(self, attempt: Attempt, ref: str) -> Attempt:
        return self._write(replace(attempt, outcome=Outcome.GOT, ref=ref))

    def refused(self, attempt: Attempt) -> Attempt:
        return self._write(replace(attempt, outcome=Outcome.NONE))

    def ended(self, attempt: Attempt, now_ms: int, reason: str) -> Attempt:
        return self._write(replace(attempt, ended_ms=now_ms, reason=reason))

    def close(self) -> None:
        with self._lock:
            self._base.close()

    def _write(self, attempt: Attempt) -> Attempt:
        values = (
            attempt.instance,
            attempt.number,
            attempt.type,
            attempt.zone,
            int(attempt.spot),
            attempt.outcome.value,
            attempt.asked_ms,
            attempt.ref,
            attempt.ended_ms,
            attempt.reason,
            attempt.begun_ms,
        )
        marks = ", ".join("?" * len(values))
        with self._lock:
            try:
                self._base.execute(
                    f"INSERT OR REPLACE INTO attempts ({_COLUMNS}) VALUES ({marks})",  # noqa: S608  constants
                    values,
                )
            except sqlite3.Error as error:
                raise OperatorError(
                    f"the book of launches cannot be written ({error}): free space on its disk; "
                    f"{attempt.instance} is not asked for before that"
                ) from error
        return attempt

    def _forget(self, before_ms: int) -> None:
        self._base.execute(
            "DELETE FROM attempts WHERE begun_ms < ? AND (outcome = 'none' OR ended_ms < ?)",
            (before_ms, before_ms),
        )


def granted(path: Path) -> dict[InstanceId, str]:
    """What a book says of which intent got which instance; for whoever only looks at it."""
    if not path.exists():
        return {}
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as base:
            rows = base.execute(
                "SELECT instance, ref FROM attempts WHERE outcome = 'got' ORDER BY number"
            ).fetchall()
    except sqlite3.Error as error:
        raise OperatorError(
            f"the book of launches {path} cannot be read ({error}): check its permissions"
        ) from error
    return {InstanceId(instance): ref for instance, ref in rows}


def _attempt(row: tuple[object, ...]) -> Attempt:
    instance, number, type_, zone, spot, outcome, *rest = row
    return Attempt(
        InstanceId(str(instance)),
        int(str(number)),
        str(type_),
        str(zone),
        spot == 1,
        Outcome(outcome),
        *rest,  # type: ignore[arg-type]  # as the schema types them
    )
