"""A user's workdir as one file: the same content gives the same bytes, and so the same name.

A plain tar in which only what matters differs: paths, contents, the executable bit and relative
links. Times and owners are left out, names are sorted. Unpacking verifies the digest and takes only
what packing makes, so that nothing gets out of the target folder. It checks that itself: tarfile's
own filters came into Python 3.11 with its fourth release, and Debian 12 has the second.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import shutil
import stat
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from eva.model.errors import InputError, Problem
from eva.ports.storage import WorkdirDigest, WorkdirMissingError

_CHUNK_BYTES = 1024 * 1024


def pack(source: Path, out: IO[bytes]) -> WorkdirDigest:
    """Write the folder to `out`, open for reading and writing; what it is called from now on."""
    if not source.is_dir():
        raise InputError.single("workdir", f"{source} is not a folder")
    _refuse_what_cannot_travel(source)
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in _members(source):
            info = archive.gettarinfo(path, arcname=path.relative_to(source).as_posix())
            if info.islnk():  # two names of one file: stored twice, as two files
                info.type, info.linkname, info.size = tarfile.REGTYPE, "", path.stat().st_size
            info.mtime = info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mode = 0o755 if info.isdir() or info.mode & stat.S_IXUSR else 0o644
            if info.isreg():
                with path.open("rb") as content:
                    archive.addfile(info, content)
            else:
                archive.addfile(info)
    return digest_of(out)


def digest_of(content: IO[bytes]) -> WorkdirDigest:
    content.seek(0)
    digest = hashlib.sha256()
    for chunk in iter(lambda: content.read(_CHUNK_BYTES), b""):
        digest.update(chunk)
    return WorkdirDigest(digest.hexdigest())


def unpack(content: IO[bytes], digest: WorkdirDigest, target: Path) -> None:
    """The folder again, in one step: either all of it stands at `target`, or nothing."""
    if digest_of(content) != digest:
        raise WorkdirMissingError(
            f"the stored workdir {digest} has other bytes than its name says: submit the job again"
        )
    if target.exists() and any(target.iterdir()):
        raise InputError.single("workdir", f"{target} is not empty: name a fresh folder")
    partial = target.with_name(f".{target.name}.partial")
    if partial.exists():
        shutil.rmtree(partial)
    partial.mkdir(parents=True)
    content.seek(0)
    try:
        with tarfile.open(fileobj=content, mode="r:") as archive:
            members = archive.getmembers()
            _refuse_what_was_not_packed(members)
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(partial)  # noqa: S202  its members were looked at
    except tarfile.TarError as error:
        raise InputError.single("workdir", f"is no tar of a folder ({error})") from error
    partial.replace(target)


def _members(source: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(source):  # names linked folders, and stays out of them
        folders.sort()
        for name in sorted([*folders, *files]):
            yield Path(folder) / name


def _refuse_what_cannot_travel(source: Path) -> None:
    inside = source.resolve()
    problems = []
    for path in _members(source):
        if path.is_symlink():
            leads_to = path.resolve()
            if path.readlink().is_absolute() or inside not in (leads_to, *leads_to.parents):
                problems.append(
                    Problem(str(path), "a link that leads out of the workdir: copy what it names")
                )
        elif not (path.is_dir() or path.is_file()):
            problems.append(Problem(str(path), "neither file nor folder: remove it"))
    if problems:
        raise InputError(problems)


def _refuse_what_was_not_packed(members: Sequence[tarfile.TarInfo]) -> None:
    """Only files, folders and links that stay inside, each once, and nothing by way of a link."""
    links = {PurePosixPath(each.name) for each in members if each.issym()}
    problems, seen = [], set()
    for each in members:
        path = PurePosixPath(each.name)
        if _leads_out(each.name) or not links.isdisjoint(path.parents):
            problems.append(Problem(each.name, "a name that leads out of the workdir"))
        elif path in seen:
            problems.append(Problem(each.name, "is in it twice"))
        elif each.issym() and _leads_out(posixpath.join(path.parent, each.linkname)):
            problems.append(Problem(each.name, "a link that leads out of the workdir"))
        elif not (each.isreg() or each.isdir() or each.issym()):
            problems.append(Problem(each.name, "neither file nor folder"))
        seen.add(path)
    if problems:
        raise InputError(problems)


def _leads_out(name: str) -> bool:
    inside = posixpath.normpath(name)
    return inside.startswith(("/", "../")) or inside == ".."
