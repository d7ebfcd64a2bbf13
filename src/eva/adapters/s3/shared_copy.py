"""A job's shared folder copied from a bucket and back, where it cannot be mounted.

What came is remembered by size and time, so that only what a task changed goes back. Tasks on
other instances see it when they start. Of two that write the same file the later one to save wins,
and a file that a task removed stays in the bucket: a copy cannot tell whether it is still needed.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO

from eva.adapters.local_files import files_below, typed_file_errors
from eva.adapters.s3.bucket import AT_ONCE, Bucket

Seen = dict[str, list[int]]  # path -> size and time of change, as JSON keeps it


class SharedCopy:
    """`folder` holds the copy of what is stored under `name`; `memory` what it was like."""

    def __init__(self, bucket: Bucket, name: str, folder: Path, memory: Path) -> None:
        self._bucket = bucket
        self._name = name
        self._folder = folder
        self._memory = memory

    def bring(self) -> None:
        """Copy here, unless it was: a worker that restarted must not undo a task's changes."""
        if self._memory.exists():
            return
        with typed_file_errors(f"making {self._folder}"):
            self._folder.mkdir(parents=True, exist_ok=True)
        base = f"{self._name}/"
        paths = [
            path
            for path in (each.name.removeprefix(base) for each in self._bucket.list(base))
            if _stays_inside(path)
        ]
        self._bucket.get_all((f"{base}{path}", self._folder / path) for path in paths)
        with typed_file_errors(f"reading {self._folder}"):
            self._remember(
                {
                    file.relative_to(self._folder).as_posix(): _look(file.stat())
                    for file in files_below(self._folder)
                }
            )

    def carry_back(self) -> None:
        """Copy back what changed since. Links are left out: they may lead out of the folder."""
        if not self._memory.exists():
            return
        with typed_file_errors(f"reading {self._folder}"):
            seen: Seen = json.loads(self._memory.read_text())
            changed = _changed_files(self._folder, seen)
            while some := list(islice(changed, AT_ONCE)):
                self._bucket.put_all((f"{self._name}/{path}", opener) for path, _, opener in some)
                seen |= {path: look for path, look, _ in some}
                self._remember(seen)

    def _remember(self, seen: Seen) -> None:
        temporary = self._memory.with_suffix(".tmp")
        temporary.write_text(json.dumps(seen))
        temporary.replace(self._memory)


def _changed_files(
    folder: Path, seen: Seen
) -> Iterator[tuple[str, list[int], Callable[[], IO[bytes]]]]:
    """Regular files that differ, each opened already.

    They are opened relative to the folder that is being walked and never through a link, so that
    a task that swaps a folder for a link meanwhile cannot have other files of this machine sent.
    """
    for inner, folders, names, descriptor in os.fwalk(folder):
        folders.sort()
        for name in sorted(names):
            path = (Path(inner) / name).relative_to(folder).as_posix()
            look = _plain_look(name, descriptor)
            if look is not None and look != seen.get(path):
                opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=descriptor)
                yield path, look, partial(_adopt, opened)


def _adopt(descriptor: int) -> IO[bytes]:
    return os.fdopen(descriptor, "rb")


def _plain_look(name: str, descriptor: int) -> list[int] | None:
    status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    return _look(status) if stat.S_ISREG(status.st_mode) else None


def _look(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns]


def _stays_inside(path: str) -> bool:
    """Keys of a bucket may be anything; only those that are paths in the folder are files."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.endswith("/") and ".." not in parts and parts[0] != "/"
