"""The bytes of a file that somebody named, or the word why there are none.

Nothing here waits for ever: a named pipe that nobody writes to is said to be one, while the pipe
of a shell's `<(...)` is read to its end.
"""

from __future__ import annotations

import os
import stat
import sys
from typing import BinaryIO

from eva.model.errors import InputError

STDIN = "-"


def read_bytes(path: str, at_most: int, source: str) -> bytes:
    """The first `at_most` bytes of the file at `path`; `-` is standard input."""
    try:
        if path == STDIN:
            return sys.stdin.buffer.read(at_most)
        with _open(path) as file:
            raw = file.read(at_most)
            is_pipe = stat.S_ISFIFO(os.fstat(file.fileno()).st_mode)
    except (OSError, ValueError) as error:
        raise InputError.single(source, _why(error)) from None
    if is_pipe and not raw:
        raise InputError.single(source, "is a pipe that nobody writes to; name a file")
    return raw


def _open(path: str) -> BinaryIO:
    """Opening a pipe waits for its writer unless told not to; reading it then may wait."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def _why(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "is a folder; name the file in it"
    reason = error.strerror if isinstance(error, OSError) else None
    return f"cannot be read: {reason or error}"
