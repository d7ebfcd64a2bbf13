"""Images for tests, made here out of a static busybox, because no registry may be at hand."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import shutil
import struct
import subprocess
import tarfile
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import docker
import docker.errors

from tests.support.requirements import require

ELF_INTERPRETER = 3  # PT_INTERP
BUSYBOX = Path(shutil.which("busybox") or "/bin/busybox")
REPOSITORY = "eva-test/busybox"
# Parallel test processes share one engine; each has images of its own, to remove when it ends.
PROCESS = os.environ.get("PYTEST_XDIST_WORKER", "main")


@cache
def docker_answers() -> bool:
    with warnings.catch_warnings():  # the library leaves a socket open where nobody listens
        warnings.simplefilter("ignore", ResourceWarning)
        with contextlib.suppress(docker.errors.DockerException):
            docker.from_env(timeout=10).close()
            return True
        gc.collect()
    return False


def is_static(program: Path) -> bool:
    """Whether this ELF file names no loader, and so runs in an empty file system."""
    if not program.is_file():
        return False
    image = program.read_bytes()
    (table,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    kinds = [struct.unpack_from("<I", image, table + index * size)[0] for index in range(count)]
    return ELF_INTERPRETER not in kinds


def root_file_system() -> bytes:
    """A file system with busybox under all of its names, as a tar archive."""
    names = subprocess.run([BUSYBOX, "--list"], check=True, capture_output=True, text=True)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for folder in ("bin", "tmp", "etc", "dev", "proc", "sys"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            archive.addfile(entry)
        entry = archive.gettarinfo(str(BUSYBOX.resolve()), "bin/busybox")
        entry.uid = entry.gid = 0
        with BUSYBOX.open("rb") as program:
            archive.addfile(entry, program)
        for name in sorted(set(names.stdout.split()) - {"busybox"}):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
    return buffer.getvalue()


@contextlib.contextmanager
def busybox(area: str) -> Iterator[str]:
    """The name of a small image with a shell in it, for as long as the tests of an area run."""
    require(docker_answers(), "Docker does not answer (`docker info`)")
    require(is_static(BUSYBOX), "a static busybox (Debian: busybox-static)")
    tag = f"{area}-{PROCESS}"
    with contextlib.closing(docker.from_env()) as client:
        client.api.import_image_from_data(root_file_system(), REPOSITORY, tag)
        identity = client.api.inspect_image(f"{REPOSITORY}:{tag}")["Id"]
        yield f"{REPOSITORY}:{tag}"
        remove_with_descendants(client.api, identity)


def remove_with_descendants(api: docker.APIClient, image: str) -> None:
    """Remove an image and what was built on it, layers of failed builds included."""
    for other in api.images(all=True, quiet=True):
        with contextlib.suppress(docker.errors.ImageNotFound):
            if api.inspect_image(other)["Parent"] == image:
                remove_with_descendants(api, other)
    with contextlib.suppress(docker.errors.ImageNotFound):  # it went with its last descendant
        api.remove_image(image, force=True)
