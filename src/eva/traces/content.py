"""The bytes of a trace file, whatever was wrapped around them.

gzip is recognised by content and unwrapped here, once for all text formats. Every way in which a
file can be unreadable ends in an InputError that names it.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from eva.model.errors import InputError

_GZIP = b"\x1f\x8b"
LARGEST_BYTES = 2 << 30  # a trace of ten million tasks; beyond it, the file is not a trace


def read_bytes(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
        if not raw.startswith(_GZIP):
            return raw
        with gzip.open(path) as unwrapped:
            raw = unwrapped.read(LARGEST_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError.single(
            str(path), f"is not a whole gzip file ({error}); was the copy cut short?"
        ) from None
    except OSError as error:
        raise InputError.single(str(path), f"cannot be read: {error.strerror}") from None
    if len(raw) > LARGEST_BYTES:
        raise InputError.single(str(path), f"unpacks to more than {LARGEST_BYTES >> 30} GiB")
    return raw


def as_text(path: Path, raw: bytes) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.single(
            str(path), f"is not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None
    if "\0" in text:  # UTF-16 without a mark looks like this
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError.single(f"{path}:{line}", "holds a zero byte; save it as UTF-8 text")
    return text


def read_text(path: Path) -> str:
    return as_text(path, read_bytes(path))
