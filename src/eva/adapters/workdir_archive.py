"""A user's workdir as one file: the same content gives the same bytes, and so the same name.

A plain tar in which only what matters differs: paths, contents, the executable bit and relative
links. Times and owners are left out, names are sorted.

Archives also come from strangers, over the API. Unpacking verifies the digest, and every member
before the first one is written: only what `pack` writes is taken (no hard links, no devices, no
files that are mostly holes), nothing is reached through a link, and nothing leaves the target. That
is checked here and not left to tarfile, whose filters Python 3.11 has from its fourth release on;
Debian 12 has the second.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
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
    _refuse_what_pack_never_wrote(content)
    partial = target.with_name(f".{target.name}.partial")
    if partial.exists():
        shutil.rmtree(partial)
    partial.mkdir(parents=True)
    content.seek(0)
    with tarfile.open(fileobj=content, mode="r:") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(partial)  # noqa: S202  every member was looked at
    partial.replace(target)


def _refuse_what_pack_never_wrote(content: IO[bytes]) -> None:
    content.seek(0)
    problems = []
    links: set[PurePosixPath] = set()
    seen: set[PurePosixPath] = set()
    try:
        with tarfile.open(fileobj=content, mode="r:") as archive:
            for member in archive:
                path = PurePosixPath(member.name)
                problem = "is in it twice" if path in seen else _problem_of(member, path, links)
                seen.add(path)
                if problem is not None:
                    problems.append(Problem(f"workdir: {member.name!r}", problem))
                if member.issym():
                    links.add(path)
    except (tarfile.TarError, ValueError) as error:  # a number that is none, a name that is no text
        raise InputError.single("workdir", f"is not a plain tar ({error})") from error
    if problems:
        raise InputError(problems)


def _problem_of(
    member: tarfile.TarInfo, path: PurePosixPath, links: set[PurePosixPath]
) -> str | None:
    if path.is_absolute() or ".." in path.parts:
        return "is a path that leads out of the workdir"
    if not links.isdisjoint((path, *path.parents)):
        return "is reached through a link"
    if member.issym():
        return _problem_of_link(path, PurePosixPath(member.linkname))
    if member.issparse() or not (member.isfile() or member.isdir()):
        return "is neither a plain file nor a folder nor a link"
    return None


def _problem_of_link(path: PurePosixPath, leads_to: PurePosixPath) -> str | None:
    """Judged by names alone, which is exact while nothing goes up after it went down.

    The folder of a link is reached through no link, so going up from it is what it seems; going
    down from there may meet other links, which were judged the same way.
    """
    up = 0
    while up < len(leads_to.parts) and leads_to.parts[up] == "..":
        up += 1
    if leads_to.is_absolute() or up >= len(path.parts):
        return "is a link that leads out of the workdir"
    if ".." in leads_to.parts[up:]:
        return f"is a link to {str(leads_to)!r}, down and up again: write it the short way"
    return None


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
