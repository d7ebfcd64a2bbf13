"""Files that appear whole or not at all: written beside their place, then moved there."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from eva.model.errors import InputError


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """To be written to; it takes the place of `path` when the block ends well, else vanishes."""
    try:
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
    except OSError as error:
        raise InputError.single(str(path), f"cannot be written: {error.strerror}") from None


def write_whole(path: Path, content: bytes) -> None:
    with whole_file(path) as file:
        file.write(content)
