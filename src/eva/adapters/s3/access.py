"""Mount or copy: how a job's shared folder in a bucket gets onto this machine.

A mount shows every task what the others write while they run, so it is taken where it can be had.
It needs rclone, FUSE in the kernel, and the right to use it; containers often have none of these.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from eva.ports.storage import StorageAccessError

FUSE = Path("/dev/fuse")


class AccessKind(Enum):
    MOUNT = "mount"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class Access:
    """What was chosen, and why: shown by `eva doctor` and in the worker's log."""

    kind: AccessKind
    reason: str


def choose_access(
    wanted: AccessKind | None = None,
    fuse: Path = FUSE,
    find: Callable[[str], str | None] = shutil.which,
    user_id: int | None = None,
) -> Access:
    """What is `wanted`, or the better of what this machine allows if nothing is."""
    if wanted is AccessKind.COPY:
        return Access(AccessKind.COPY, "asked for")
    missing = _missing_for_mount(fuse, find, os.geteuid() if user_id is None else user_id)
    if missing is None:
        return Access(AccessKind.MOUNT, f"rclone and {fuse} are there")
    if wanted is AccessKind.MOUNT:
        raise StorageAccessError(f"a mount was asked for, but {missing}: install it, or use copy")
    return Access(AccessKind.COPY, missing)


def _missing_for_mount(fuse: Path, find: Callable[[str], str | None], user_id: int) -> str | None:
    if find("rclone") is None:
        return "rclone is not installed"
    if not os.access(fuse, os.R_OK | os.W_OK):
        return f"{fuse} is not there, or may not be used"
    if user_id != 0 and find("fusermount3") is None and find("fusermount") is None:
        return "fusermount3 is not installed, which others than root need"
    return None
