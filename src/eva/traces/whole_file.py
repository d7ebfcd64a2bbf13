"""Files that appear whole or not at all: written beside their place, then moved there.

What stands there already and is no file (`/dev/null`, a pipe) is written to instead: moving a file
into its place would take it away from everybody on the machine. Links are followed, for the same
reason.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from eva.model.errors import InputError


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """To be written to; it takes the place of `path` when the block ends well, else vanishes."""
    try:
        if _is_stream(path):
            with path.open("wb") as file:
                yield file
        else:
            with _beside(path.resolve()) as file:
                yield file
    except OSError as error:
        raise InputError.single(str(path), f"cannot be written: {error.strerror}") from None


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[BinaryIO]:
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(beside).chmod(0o644)
        Path(beside).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(beside).unlink()
        raise


def _is_stream(path: Path) -> bool:
    """Whether something stands there that bytes go through instead of staying."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def write_whole(path: Path, content: bytes) -> None:
    with whole_file(path) as file:
        file.write(content)
