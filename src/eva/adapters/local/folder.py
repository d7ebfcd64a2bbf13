"""An instance's folder: all that is known of it, so that anybody may die and nothing is forgotten.

The host holds a lock on `lock` for as long as it lives; the kernel lets go of it, however the host
ends. So "does it live?" needs no process id. Marks are written once and never change: `begun`,
`launched`, `booted`, `terminate` (somebody asked) and `terminated`, each with a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PRIVATE = 0o600


class InstanceFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.bootstrap = path / "bootstrap"
        self.worker_state = path / "worker"
        self.control = path / "control"

    def exists(self) -> bool:
        return (self.path / "machine.json").exists()

    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / "machine.json").read_text())
        return found

    @property
    def made_ms(self) -> int:
        return (self.path / "machine.json").stat().st_mtime_ns // 1_000_000

    def worker_command(self, *more: str) -> list[str]:
        """How to run the worker here, or to sweep up after it."""
        facts = self.facts()
        return [
            *facts["command"],
            "--bootstrap-file",
            str(self.bootstrap),
            "--state",
            str(self.worker_state),
            "--capacity",
            ",".join(map(str, facts["capacity"])),
            "--virtual",
            *more,
        ]

    def mark(self, name: str, at_ms: int, reason: str = "") -> None:
        """Set a mark, durably; one that is set stays as it is."""
        if self.marked(name) is None:
            write_durably(self.path / f"{name}.json", {"at_ms": at_ms, "reason": reason})

    def marked(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self.path / f"{name}.json").read_text())
        except FileNotFoundError:
            return None
        return found

    def lock(self) -> int | None:
        """The lock's descriptor, now held; None if a host lives."""
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, _PRIVATE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    @contextlib.contextmanager
    def held(self) -> Iterator[bool]:
        descriptor = self.lock()
        try:
            yield descriptor is not None
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def wake_host(self) -> None:
        """Have the host look at its marks; without one there is nobody to wake."""
        with contextlib.suppress(OSError):
            descriptor = os.open(self.control, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(descriptor, b"\n")
            finally:
                os.close(descriptor)


def write_durably(path: Path, content: dict[str, Any]) -> None:
    write_text_durably(path, json.dumps(content))


def write_text_durably(path: Path, text: str) -> None:
    """The whole of it or nothing, and only for its owner to read."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE)
    try:
        os.write(descriptor, text.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    partial.replace(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
