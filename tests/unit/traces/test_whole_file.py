"""Files appear whole or not at all, and nothing but a file is ever replaced by one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from eva.traces.whole_file import whole_file, write_whole


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    """So are /dev/null and /dev/stdout; a pipe is the one such thing that a test may lose."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, b"events")
        assert os.read(reader, 100) == b"events"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [entry.name for entry in tmp_path.iterdir()] == ["pipe"]


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    file, link = tmp_path / "elsewhere" / "file", tmp_path / "link"
    file.write_bytes(b"old")
    link.symlink_to(file)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"


def test_what_fails_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), whole_file(path) as file:
        file.writelines(1 // left * b"half" for left in (1, 0))
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
