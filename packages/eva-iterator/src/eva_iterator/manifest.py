"""What makes a checkpoint complete: `MANIFEST.json`, written last and atomically.

A checkpoint is a folder. While files are being written there is no manifest, and the folder is
nothing; once the manifest stands, every file it names was on disk before it. Whoever copies or
restores a checkpoint verifies it first. The worker uses this same module.

A manifest is written by the user's task and read by the worker, so reading trusts nothing: paths
stay inside the folder, size and depth are bounded, and all problems are listed at once.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Union

from eva_iterator.errors import CheckpointError
from eva_iterator.protocol import is_checkpoint_name

MANIFEST_NAME = "MANIFEST.json"
FORMAT = "eva-checkpoint"
VERSION = 1
MAX_MANIFEST_BYTES = 64 * 1024 * 1024
_TEMPORARY_NAME = MANIFEST_NAME + ".tmp"
_CHUNK_BYTES = 1024 * 1024
_NO_FSYNC = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EBADF)  # said by some FUSE mounts

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class FileEntry:
    path: str  # relative to the checkpoint, with forward slashes
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    step: int | None  # steps done when the checkpoint was taken
    written_at_ms: int  # wall clock, to order checkpoints that say no step
    files: tuple[FileEntry, ...]

    @property
    def size_bytes(self) -> int:
        return sum(entry.size_bytes for entry in self.files)


def write_manifest(folder: PathLike, step: int | None = None) -> Manifest:
    """Make the folder a complete checkpoint: files to disk first, then the manifest, at once.

    Call it when all files are written and closed. Calling it again replaces the manifest.
    """
    root = Path(folder)
    manifest = Manifest(
        step=step,
        written_at_ms=int(time.time() * 1000),
        files=tuple(_entry(root, path, durable=True) for path in _files(root)),
    )
    for directory, _, _ in os.walk(str(root)):
        _sync_directory(Path(directory))
    temporary = root / _TEMPORARY_NAME
    with temporary.open("w", encoding="utf-8") as out:
        json.dump(_to_json(manifest), out, indent=1)
        out.write("\n")
        out.flush()
        _sync(out.fileno())
    temporary.replace(root / MANIFEST_NAME)
    _sync_directory(root)
    return manifest


def read_manifest(folder: PathLike) -> Manifest:
    """The manifest as it stands, its files not looked at."""
    path = Path(folder) / MANIFEST_NAME
    try:
        # Where the task left a pipe by this name, nobody is waited for.
        with os.fdopen(os.open(str(path), os.O_RDONLY | os.O_NONBLOCK), "rb") as source:
            data = source.read(MAX_MANIFEST_BYTES + 1) or b""
    except OSError as error:
        raise CheckpointError(
            str(path), [f"cannot be read ({error.strerror}): the checkpoint is not complete"]
        ) from error
    if len(data) > MAX_MANIFEST_BYTES:
        raise CheckpointError(str(path), [f"longer than {MAX_MANIFEST_BYTES} bytes"])
    try:
        document = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(str(path), [f"not JSON ({error}): write it anew"]) from error
    return _from_json(str(path), document)


def verify_manifest(folder: PathLike, *, contents: bool = True) -> Manifest:
    """The manifest of a complete checkpoint; CheckpointError naming everything missing or changed.

    With `contents=False` only presence and sizes are looked at, for gigabytes on a slow mount.
    Files that the manifest does not name do no harm.
    """
    root = Path(folder)
    manifest = read_manifest(root)
    problems = [
        found
        for found in (_check(root, entry, contents=contents) for entry in manifest.files)
        if found
    ]
    if problems:
        raise CheckpointError(str(root), problems)
    return manifest


def latest_complete(root: PathLike, *, contents: bool = True) -> Path | None:
    """The newest complete checkpoint among the folder itself and the folders right inside it."""
    folder = Path(root)
    candidates = [folder]
    if folder.is_dir():
        candidates += [child for child in folder.iterdir() if child.is_dir()]
    complete: list[tuple[int, int, str]] = []
    for candidate in candidates:
        try:
            manifest = verify_manifest(candidate, contents=contents)
        except CheckpointError:
            continue  # an incomplete checkpoint is as good as none
        step = -1 if manifest.step is None else manifest.step
        complete.append((step, manifest.written_at_ms, str(candidate)))
    return Path(max(complete)[2]) if complete else None


def checkpoint_path(root: PathLike, name: str) -> Path:
    """The folder of a checkpoint that a task named; refuses names and links that lead elsewhere."""
    base = Path(root).resolve()
    if is_checkpoint_name(name):
        path = (base / name).resolve()
        if path == base or base in path.parents:
            return path
    raise CheckpointError(
        str(root), [f"checkpoint name {name!r} leads out of the folder: give a relative path"]
    )


def _files(root: Path) -> Iterator[str]:
    """Relative paths of all files, sorted; links that lead elsewhere are refused."""
    inside = root.resolve()
    found: list[str] = []
    problems: list[str] = []
    for directory, directories, names in os.walk(str(root)):
        for name in directories + names:
            path = Path(directory) / name
            relative = path.relative_to(root).as_posix()
            if relative in (MANIFEST_NAME, _TEMPORARY_NAME):
                continue
            if path.is_symlink() and (path.is_dir() or inside not in path.resolve().parents):
                problems.append(f"{relative} is a link that leads elsewhere: copy what it names")
            elif name in names and not path.is_file():
                problems.append(f"{relative} is not a regular file: remove it")
            elif not is_checkpoint_name(relative):
                problems.append(f"{relative!r} has unprintable characters: rename it")
            elif name in names:
                found.append(relative)
    if problems:
        raise CheckpointError(str(root), sorted(problems))
    return iter(sorted(found))


def _entry(root: Path, relative: str, *, durable: bool) -> FileEntry:
    digest = hashlib.sha256()
    size_bytes = 0
    with (root / relative).open("rb") as source:
        for chunk in iter(lambda: source.read(_CHUNK_BYTES), b""):
            digest.update(chunk)
            size_bytes += len(chunk)
        if durable:
            _sync(source.fileno())
    return FileEntry(relative, size_bytes, digest.hexdigest())


def _check(root: Path, entry: FileEntry, *, contents: bool) -> str | None:
    """What is wrong with one file, None if nothing is."""
    path = root / entry.path
    try:
        if root.resolve() not in path.resolve().parents or not path.is_file():
            return f"{entry.path} is missing"
        size_bytes = path.stat().st_size
        if size_bytes != entry.size_bytes:
            return f"{entry.path} has {size_bytes} bytes instead of {entry.size_bytes}"
        if contents and _entry(root, entry.path, durable=False).sha256 != entry.sha256:
            return f"{entry.path} has other contents than its sha256 says"
    except OSError as error:
        return f"{entry.path} cannot be read ({error.strerror})"
    return None


def _to_json(manifest: Manifest) -> dict[str, object]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "step": manifest.step,
        "written_at_ms": manifest.written_at_ms,
        "files": [
            {"path": entry.path, "bytes": entry.size_bytes, "sha256": entry.sha256}
            for entry in manifest.files
        ],
    }


def _from_json(where: str, document: object) -> Manifest:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CheckpointError(where, [f'not a manifest: "format" must be "{FORMAT}"'])
    if document.get("version") != VERSION:
        raise CheckpointError(
            where, [f"version {document.get('version')!r} is unknown: use {VERSION}"]
        )
    problems: list[str] = []
    step = document.get("step")
    if step is not None and not _is_count(step):
        problems.append(f"step is {step!r}: give a whole number or null")
    written_at_ms = document.get("written_at_ms", 0)
    if not _is_count(written_at_ms):
        problems.append(f"written_at_ms is {written_at_ms!r}: give a whole number")
    listed = document.get("files")
    if not isinstance(listed, list):
        problems.append("files must be a list")
        listed = []
    entries: list[FileEntry] = []
    for index, item in enumerate(listed):
        entry = _entry_from_json(item)
        if entry is None:
            problems.append(f"files[{index}] needs a relative path, bytes and sha256")
        else:
            entries.append(entry)
    if problems:
        raise CheckpointError(where, problems)
    return Manifest(step, written_at_ms, tuple(entries))


def _entry_from_json(item: object) -> FileEntry | None:
    if not isinstance(item, dict):
        return None
    path, size_bytes, sha256 = item.get("path"), item.get("bytes"), item.get("sha256")
    if not (isinstance(path, str) and is_checkpoint_name(path) and path != "."):
        return None
    if not (isinstance(size_bytes, int) and _is_count(size_bytes)):
        return None
    if not (
        isinstance(sha256, str) and len(sha256) == 64 and set(sha256) <= set("0123456789abcdef")
    ):
        return None
    return FileEntry(path, size_bytes, sha256)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(str(directory), os.O_RDONLY)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FSYNC:
            raise
