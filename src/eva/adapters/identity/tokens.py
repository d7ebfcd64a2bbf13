"""Join tokens: one use each, for one instance, for a while. Only their hashes are kept.

"One use" is one *key*: a worker whose answer was lost asks again with the same key and is given its
certificate again; anybody else who holds the token by then is refused.
"""

from __future__ import annotations

import enum
import hashlib
import secrets
import sqlite3
import threading
from pathlib import Path

from eva.model.errors import OperatorError
from eva.model.ids import InstanceId

_SCHEMA = """
CREATE TABLE IF NOT EXISTS tokens (
    hash TEXT PRIMARY KEY, instance TEXT NOT NULL, expires_ms INTEGER NOT NULL, used_by TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS revoked (instance TEXT PRIMARY KEY) STRICT;
"""


class TokenProblem(enum.Enum):
    UNKNOWN = "this token was never issued, or not for this instance"
    USED = "this token was used already, by another key"
    EXPIRED = "this token has expired"
    REVOKED = "this instance was dismissed"


class TokenRefusedError(OperatorError):
    """A worker may not join; `problem` says why, for those who branch on it."""

    def __init__(self, instance: InstanceId, problem: TokenProblem) -> None:
        self.problem = problem
        super().__init__(
            f"{instance} may not join: {problem.value}. Make a new one with `eva token`, or let "
            f"the master launch a new instance"
        )


class TokenStore:
    """Tokens and dismissals on disk. Short calls, from any thread."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        try:
            path.touch(mode=0o600)
            self._base = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA synchronous = FULL")
            self._base.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise OperatorError(
                f"the token store {path} cannot be opened ({error}): check its permissions and "
                "the space on its disk"
            ) from error

    def issue(self, instance: InstanceId, expires_ms: int) -> str:
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._base.execute(
                "INSERT INTO tokens VALUES (?, ?, ?, NULL)", (_hash(token), instance, expires_ms)
            )
        return token

    def redeem(self, token: str, instance: InstanceId, key: str, now_ms: int) -> None:
        """Use a token up, or raise TokenRefusedError."""
        with self._lock:
            problem = self._problem(token, instance, key, now_ms)
            if problem is None:
                # Compare and set: of two who come at once, one is served.
                changed = self._base.execute(
                    "UPDATE tokens SET used_by = ? WHERE hash = ? AND coalesce(used_by, ?) = ?",
                    (key, _hash(token), key, key),
                ).rowcount
                problem = None if changed else TokenProblem.USED
        if problem is not None:
            raise TokenRefusedError(instance, problem)

    def _problem(
        self, token: str, instance: InstanceId, key: str, now_ms: int
    ) -> TokenProblem | None:
        row = self._base.execute(
            "SELECT instance, expires_ms, used_by FROM tokens WHERE hash = ?", (_hash(token),)
        ).fetchone()
        if row is None or row[0] != instance:
            return TokenProblem.UNKNOWN
        if self._is_revoked(instance):
            return TokenProblem.REVOKED
        if row[2] is not None and row[2] != key:
            return TokenProblem.USED
        return TokenProblem.EXPIRED if now_ms > row[1] else None

    def revoke(self, instance: InstanceId) -> None:
        with self._lock:
            self._base.execute("INSERT OR IGNORE INTO revoked VALUES (?)", (instance,))
            self._base.execute("DELETE FROM tokens WHERE instance = ?", (instance,))

    def is_revoked(self, instance: InstanceId) -> bool:
        with self._lock:
            return self._is_revoked(instance)

    def _is_revoked(self, instance: InstanceId) -> bool:
        row = self._base.execute("SELECT 1 FROM revoked WHERE instance = ?", (instance,)).fetchone()
        return row is not None

    def close(self) -> None:
        with self._lock:
            self._base.close()


def _hash(token: str) -> str:
    """Tokens are long and random, so a plain hash gives nothing away."""
    return hashlib.sha256(token.encode()).hexdigest()
