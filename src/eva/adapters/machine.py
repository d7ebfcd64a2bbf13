"""What adapters that use this machine share: staging data onto it, and naming its complaints."""

from __future__ import annotations

import contextlib
import errno
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from eva.model.errors import EvaError
from eva.ports.runtime import DiskFullError, LaunchRefusedError, RuntimeRefusedError, Staging

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def disk_problem(code: int | None, message: str, where: str) -> EvaError:
    """The typed error for what the operating system said."""
    if code in FULL:
        return DiskFullError(
            f"no space left at {where}: {message}. Free some there, or use a larger disk"
        )
    return RuntimeRefusedError(f"{where}: {message}. Check the path and its permissions")


@contextlib.contextmanager
def disk_problems(where: str) -> Iterator[None]:
    """Turn errors of the operating system into ours."""
    try:
        yield
    except OSError as error:
        raise disk_problem(error.errno, str(error), where) from error


def stage(staging: Staging) -> None:
    """Copy a file or folder, whole or not at all, unless it is there already."""
    source, destination = staging.source, staging.destination
    if destination.exists():
        return
    if not source.exists():
        raise LaunchRefusedError.single(
            str(source), "does not exist, and was to be staged: check the path, or the mount"
        )
    with disk_problems(str(destination)):
        destination.parent.mkdir(parents=True, exist_ok=True)
        partial = destination.with_name(f".{destination.name}.{uuid.uuid4().hex}")
        try:
            if source.is_dir():
                shutil.copytree(source, partial, symlinks=True)
            else:
                shutil.copy2(source, partial)
            _put_in_place(partial, destination)
        finally:
            discard(partial)


def _put_in_place(partial: Path, destination: Path) -> None:
    """Rename; another who staged the same in between has won, and ours is dropped."""
    try:
        partial.rename(destination)
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR}:
            raise


def discard(path: Path) -> None:
    """Remove a file or folder if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
