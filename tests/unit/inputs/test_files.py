"""Files that are none, and pipes."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from eva.inputs.files import read_bytes
from eva.model.errors import InputError


def complaint(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_bytes(str(path), 100, path.name)
    return str(caught.value)


def test_no_more_is_read_than_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 1_000)
    assert read_bytes(str(tmp_path / "file"), 100, "file") == b"x" * 100


def test_what_is_no_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    assert complaint(tmp_path) == f"{tmp_path.name}: is a folder; name the file in it"
    assert complaint(tmp_path / "none") == "none: no such file"
    assert complaint(tmp_path / "file" / "below").startswith("below: cannot be read: Not a dir")
    assert complaint(tmp_path / "loop").startswith("loop: cannot be read: Too many levels")


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert complaint(tmp_path / "pipe") == "pipe: is a pipe that nobody writes to; name a file"


def test_the_pipe_of_a_shell_is_read_to_its_end() -> None:
    """`eva submit <(generate)`: the writer is there, and may be slow."""
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(b"one ")
            pipe.flush()
            pipe.write(b"two")

    writer = threading.Thread(target=write)
    with os.fdopen(reading, "rb"):
        writer.start()
        assert read_bytes(f"/dev/fd/{reading}", 100, "pipe") == b"one two"
        writer.join()
