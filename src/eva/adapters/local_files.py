"""Files of this machine or of a network mount, for the storage adapters: durable and typed."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eva_iterator.manifest import MANIFEST_NAME, Manifest

from eva.ports.storage import StorageAccessError, StorageFullError, StorageUnreachableError, Usage

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# What network file systems say while their server is away.
_UNREACHABLE = {errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.ENOTCONN}


@contextmanager
def typed_file_errors(what: str) -> Iterator[None]:
    """Failures of the file system as errors of the storage port; `what` was being done."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StorageFullError(
                f"no space is left while {what} ({error}): free some, or raise the quota"
            ) from error
        if error.errno in _UNREACHABLE:
            raise StorageUnreachableError(
                f"the file system does not answer while {what} ({error}): try again, and check "
                "the mount"
            ) from error
        raise StorageAccessError(
            f"failed while {what} ({error}): check that the folder exists, that it may be "
            "written, and who owns it"
        ) from error


def sync(path: Path) -> None:
    """Bring a file or folder to disk. Some network mounts cannot; they are taken at their word."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}:
            raise
    finally:
        os.close(descriptor)


def sync_checkpoint(folder: Path, manifest: Manifest) -> None:
    """Bring a checkpoint to disk, its manifest last: a writer in another language may not have."""
    for entry in manifest.files:
        sync((folder / entry.path).resolve())
    for inner in sorted({(folder / entry.path).parent for entry in manifest.files} - {folder}):
        sync(inner)
    sync(folder / MANIFEST_NAME)
    sync(folder)


def files_below(folder: Path) -> Iterator[Path]:
    """Regular files, sorted. Links are neither followed nor named."""
    if folder.is_symlink():
        return
    for inner, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(inner) / name
            if path.is_file() and not path.is_symlink():
                yield path


def usage_of(folder: Path) -> Usage:
    files = size_bytes = 0
    for path in files_below(folder):
        with suppress(FileNotFoundError):  # removed while we counted
            size_bytes += path.stat().st_size
            files += 1
    return Usage(files, size_bytes)


def last_change_ms(paths: Iterable[Path]) -> int:
    """When the newest of these, or of what is below them, was changed."""
    newest = 0.0
    for path in paths:
        for each in (path, *files_below(path)):
            with suppress(FileNotFoundError):
                newest = max(newest, each.lstat().st_mtime)
    return int(newest * 1_000)


def remove_tree(folder: Path) -> None:
    """Remove a folder, or the link that stands in its place; never what a link names."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink(missing_ok=True)
    elif folder.exists():
        shutil.rmtree(folder)
