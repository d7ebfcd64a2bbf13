"""Proof that the holder of a lease lives, kept by the kernel.

A master that was killed should be back at once, not when its lease has run out. Its process holds
a lock on a small file named after its token; the kernel drops the lock with the process, however
that ended. A contender that can take the lock therefore knows that the holder is dead. One that
cannot, or finds no file, knows nothing and goes by the lease's clock. The lock only ever shortens
the wait: what keeps an old master from writing is the token in the database.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path


class Liveness:
    """One lock file per token, beside the database."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._held: dict[int, int] = {}  # token -> descriptor, open as long as we live

    def show(self, token: int) -> None:
        descriptor = os.open(self._file(token), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # left by an acquisition of another process that did not commit
            os.close(descriptor)
            return
        self._held[token] = descriptor
        self._tidy(token)

    def retract(self, token: int) -> None:
        descriptor = self._held.pop(token, None)
        if descriptor is not None:
            os.close(descriptor)

    def is_gone(self, token: int) -> bool:
        if token in self._held:
            return False
        try:
            descriptor = os.open(self._file(token), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            return False
        finally:
            os.close(descriptor)

    def close(self) -> None:
        for token in list(self._held):
            self.retract(token)

    def _file(self, token: int) -> Path:
        return self._database.with_name(f"{self._database.name}-lease-{token}")

    def _tidy(self, token: int) -> None:
        """Remove the files of tokens long past; the one before ours may still be current."""
        prefix = f"{self._database.name}-lease-"
        for file in self._database.parent.glob(f"{prefix}*"):
            number = file.name.removeprefix(prefix)
            if number.isdecimal() and int(number) < token - 1:
                with suppress(FileNotFoundError):
                    file.unlink()
