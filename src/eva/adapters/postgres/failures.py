"""PostgreSQL's failures, sorted by what can be done about them."""

from __future__ import annotations

import psycopg
from psycopg import errors

from eva.model.errors import EvaError
from eva.ports.journal import (
    JournalAccessError,
    JournalCorruptError,
    JournalFullError,
    JournalUnreachableError,
)

# Each with the remedy. The first class that fits decides, so the narrow ones come first.
_FULL = (errors.DiskFull,)
_CORRUPT = (errors.DataCorrupted, errors.IndexCorrupted)
_ACCESS = (
    errors.InsufficientPrivilege,
    errors.InvalidPassword,
    errors.InvalidAuthorizationSpecification,
    errors.InvalidCatalogName,
)
# Worth another try on the same or a fresh connection. A read-only server is a replica that may
# be promoted, or an old primary that an address still points to.
_PASSING = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.ReadOnlySqlTransaction,
    errors.IdleInTransactionSessionTimeout,
)
# While connecting, the server's reason comes as text only.
_REFUSED = ("authentication failed", "does not exist", "no pg_hba.conf entry", "permission denied")


def is_passing(error: psycopg.Error) -> bool:
    """Whether trying again, without any change, may succeed."""
    if isinstance(error, (*_FULL, *_CORRUPT, *_ACCESS)):
        return False
    return isinstance(error, _PASSING) and not _is_refused(error)


def typed_error(error: psycopg.Error, name: str, *, in_doubt: bool = False) -> EvaError:
    """What the reader of this failure can do about it."""
    detail = " ".join(str(error).split())
    if isinstance(error, _FULL):
        return JournalFullError(
            f"no space is left on the server of {name} ({detail}): free some; nothing of this "
            "append was kept, and the next one works as soon as there is space"
        )
    if isinstance(error, _CORRUPT):
        return JournalCorruptError(f"{name} is damaged ({detail}): restore it from a backup")
    if is_passing(error):
        doubt = (
            " The connection broke in a commit whose outcome is not known: read the journal "
            "before going on."
            if in_doubt
            else ""
        )
        return JournalUnreachableError(
            f"{name} does not answer ({detail}): try again, and check that the server runs and "
            f"can be reached.{doubt}",
            in_doubt=in_doubt,
        )
    return JournalAccessError(
        f"{name} refuses us ({detail}): check the user, its password and its rights on the database"
    )


def _is_refused(error: psycopg.Error) -> bool:
    text = str(error)
    return error.sqlstate is None and any(reason in text for reason in _REFUSED)
