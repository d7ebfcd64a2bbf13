"""Images: pulled by name, or built from a Dockerfile once per cluster and content.

A build is named by a digest of all that goes into it (the context that .dockerignore leaves, the
Dockerfile, the build arguments), so a migration finds it and nobody builds on a path that matters.
On one machine a lock makes concurrent builds one. Across machines, where no registry is at hand,
`store` (a folder of the cluster's global storage) passes the built image on as an archive.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import docker.utils

from eva.adapters.docker.containers import CLUSTER
from eva.adapters.docker.engine import Engine, NotFoundError, meaning_of
from eva.adapters.machine import disk_problems
from eva.model.errors import EvaError, Problem
from eva.ports.runtime import (
    BuildFailedError,
    ImageBuild,
    ImageNotFoundError,
    ImageReference,
    LaunchRefusedError,
    Prepared,
)

LAST_LINES = 20


class Images:
    """`state` holds the build locks; workers that share an engine should share it."""

    def __init__(self, engine: Engine, cluster: str, state: Path, store: Path | None) -> None:
        self._engine = engine
        self._cluster = cluster
        self._state = state
        self._store = store
        self._building: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def have(self, image: ImageReference | ImageBuild) -> Prepared:
        if isinstance(image, ImageReference):
            return await self._pulled(image.reference)
        digest = await asyncio.to_thread(content_digest, image)
        tag = f"eva/{hashlib.sha256(self._cluster.encode()).hexdigest()[:12]}:{digest[:40]}"
        async with self._building[tag]:  # so that one thread at most waits for the file lock
            return await self._engine.call(
                f"building {image.context / image.dockerfile}",
                lambda api: self._built(api, image, tag),
            )

    async def _pulled(self, reference: str) -> Prepared:
        found = await self._engine.call(
            f"image {reference}", lambda api: local_image(api, reference)
        )
        if found is None:
            found = await self._engine.call(f"image {reference}", lambda api: pull(api, reference))
        return Prepared(found)

    def _built(self, api: Any, image: ImageBuild, tag: str) -> Prepared:
        with file_lock(self._state / f"build-{tag.rpartition(':')[2]}.lock"):
            found = local_image(api, tag)
            if found is not None:
                return Prepared(found)
            archive = None if self._store is None else self._store / f"{tag.rpartition(':')[2]}.tar"
            if archive is not None and archive.exists():
                with disk_problems(str(archive)), archive.open("rb") as file:
                    api.load_image(file)
                found = local_image(api, tag)
                if found is not None:
                    return Prepared(found)
            build(api, image, tag, {CLUSTER: self._cluster})
            if archive is not None:
                save(api, tag, archive)
            found = local_image(api, tag)
            if found is None:
                raise NotFoundError(f"image {tag} was built and is gone: was it pruned? Ask again")
            return Prepared(found, built=True)


def local_image(api: Any, reference: str) -> str | None:
    """The exact identity of an image that is here."""
    try:
        identity: str = api.inspect_image(reference)["Id"]
    except docker.errors.ImageNotFound:
        return None
    return identity


def pull(api: Any, reference: str) -> str:
    if reference.startswith("sha256:"):
        raise ImageNotFoundError.single(
            f"image {reference}", "is not on this machine, and an id without a name has no registry"
        )
    repository, tag = docker.utils.parse_repository_tag(reference)
    what = f"image {reference}"
    for line in api.pull(repository, tag or "latest", stream=True, decode=True):
        if "error" in line:
            raise meaning_of(line["error"], what) or ImageNotFoundError.single(what, line["error"])
    identity = local_image(api, reference)
    if identity is None:
        raise ImageNotFoundError.single(what, "was pulled and is gone: was it pruned? Ask again")
    return identity


def build(api: Any, image: ImageBuild, tag: str, labels: dict[str, str]) -> None:
    """Build, or raise with the last lines of what was printed."""
    printed: list[str] = []
    for line in api.build(
        path=str(image.context),
        dockerfile=image.dockerfile,
        tag=tag,
        buildargs=dict(image.build_args),
        labels=labels,
        rm=True,
        forcerm=True,
        decode=True,
    ):
        printed.extend(line.get("stream", "").splitlines())
        if "error" in line:
            raise build_failure(image, line["error"], printed)


def build_failure(image: ImageBuild, said: str, printed: list[str]) -> EvaError:
    """The user's mistake, unless the message names another's."""
    where = str(image.context / image.dockerfile)
    meaning = meaning_of(said, where)
    if meaning is not None:
        return meaning
    last_lines = [line for line in printed if line.strip()][-LAST_LINES:]
    message = "\n".join([f"does not build: {said}. It printed last:", *last_lines])
    return BuildFailedError([Problem(where, message)], last_lines)


def save(api: Any, tag: str, archive: Path) -> None:
    """Put the image into the cluster's store, whole or not at all."""
    partial = archive.with_name(f".{archive.name}.{uuid.uuid4().hex}")
    with disk_problems(str(archive)):
        archive.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("wb") as file:
                for chunk in api.get_image(tag):
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            partial.rename(archive)
        finally:
            partial.unlink(missing_ok=True)


def content_digest(image: ImageBuild) -> str:
    """A digest of everything that a build depends on, and of nothing else (no times, no owners)."""
    dockerfile = image.context / image.dockerfile
    relative = PurePosixPath(image.dockerfile)
    if relative.is_absolute() or ".." in relative.parts or not dockerfile.is_file():
        raise LaunchRefusedError.single(
            str(dockerfile), "is no file inside the build context: correct `dockerfile`"
        )
    with disk_problems(str(image.context)):
        ignore = image.context / ".dockerignore"
        lines = ignore.read_text(encoding="utf-8").splitlines() if ignore.is_file() else []
        patterns = [line.strip() for line in lines if line.strip() and line.strip()[0] != "#"]
        paths = docker.utils.exclude_paths(str(image.context), patterns, image.dockerfile)
        digest = hashlib.sha256()
        add(digest, f"{image.dockerfile}\0{sorted(image.build_args)}".encode())
        for path in sorted({*paths, image.dockerfile}):
            add_file(digest, image.context, path)
    return digest.hexdigest()


def add(digest: Any, part: bytes) -> None:
    """Length first, so that no two different contents read the same."""
    digest.update(len(part).to_bytes(8, "big"))
    digest.update(part)


def add_file(digest: Any, context: Path, path: str) -> None:
    file = context / path
    add(digest, path.encode())
    if file.is_symlink():
        add(digest, b"link " + os.fsencode(file.readlink()))
    elif file.is_file():
        add(digest, b"file x" if os.access(file, os.X_OK) else b"file")
        with file.open("rb") as opened:
            add(digest, hashlib.file_digest(opened, "sha256").digest())
    else:
        add(digest, b"folder")


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Held by one process of this machine at a time; let go by the kernel if it dies."""
    with disk_problems(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
