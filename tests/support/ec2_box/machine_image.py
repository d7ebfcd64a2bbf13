"""What the machines of the box boot: a Debian root file system, made once and kept as an image.

It is of the release of this machine and from the mirror that apt uses here, with the wheels of what
Eva's worker needs in the versions of requirements.lock, so that pip on the machine installs for
real and reaches nobody. Its tag is made of everything that goes into it. Older ones stay until
somebody removes them: `docker image rm $(docker image ls --quiet eva-test/machine)`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import docker

from eva.adapters.aws import software
from tests.support.images import docker_answers
from tests.support.requirements import REPOSITORY

NAME = "eva-test/machine"
EXTRAS = "server,s3,docker"  # as the user data installs them
# Packages of the first kind are found and configured by debootstrap, which cannot sort the others.
_BASE = ("ca-certificates",)
_PACKAGES = ("systemd", "systemd-sysv", "dbus", "iproute2", "python3", "python3-venv", "awscli")
_OVERLAY = Path(__file__).parent / "root"
_WHEELS = "opt/wheels"
_CODENAME = "VERSION_CODENAME"


class NoMachineImageError(Exception):
    """There is none, and none can be made here."""


def machine_image() -> str:
    """Its name, once it is there."""
    if not docker_answers():
        raise NoMachineImageError("a Docker that answers (`docker info`)")
    name = f"{NAME}:{_recipe()}"
    with _alone(), closing(docker.from_env(timeout=600)) as client:
        if not client.images.list(name):
            _require_tools()
            with tempfile.TemporaryDirectory(prefix="eva-machine-") as folder:
                root = Path(folder, "root")
                _install(root)
                _import(client.api, root, name)
    return name


def _recipe() -> str:
    """Two machines that were made of the same have the same name."""
    overlay = [
        f"{path.relative_to(_OVERLAY)} {path.stat().st_mode:o}\n{path.read_text()}"
        for path in sorted(_OVERLAY.rglob("*"))
        if path.is_file()
    ]
    parts = [
        _codename(),
        platform.machine(),
        (REPOSITORY / "requirements.lock").read_text(),
        (REPOSITORY / "pyproject.toml").read_text(),
        Path(__file__).read_text(),
        *overlay,
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@contextmanager
def _alone() -> Iterator[None]:
    """Parallel test processes make one image, not two."""
    path = Path(tempfile.gettempdir(), f"eva-machine-image-{os.getuid()}.lock")
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _require_tools() -> None:
    for condition, reason in (
        (_codename(), "a Debian to make a machine image from"),
        (shutil.which("debootstrap"), "debootstrap, for a machine image"),
        (os.geteuid() == 0, "root, for a machine image (debootstrap makes device nodes)"),
    ):
        if not condition:
            raise NoMachineImageError(reason)


def _codename() -> str:
    """Of the Debian that this is; empty for anything else."""
    told = platform.freedesktop_os_release()
    return told.get(_CODENAME, "") if told.get("ID") == "debian" else ""


def _mirror() -> str:
    """Where apt gets this release from."""
    asked = ("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)")
    wanted = f"{_codename()} main "
    for line in _said(*asked).splitlines():
        if line.startswith(wanted):
            return line.removeprefix(wanted)
    raise NoMachineImageError(f"an apt source for {wanted.strip()}")


def _install(root: Path) -> None:
    include = f"--include={','.join(_BASE)}"
    _said("debootstrap", "--variant=minbase", include, _codename(), str(root), _mirror())
    apt = ("chroot", str(root), "apt-get", "--quiet", "--yes", "--no-install-recommends")
    _said(*apt, "install", *_PACKAGES)
    shutil.copytree(_OVERLAY, root, dirs_exist_ok=True)
    units = ("user-data.service", "ec2-metadata.socket")
    _said("chroot", str(root), "systemctl", "enable", *units)
    for waste in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc"):
        shutil.rmtree(root / waste)
        (root / waste).mkdir()
    _collect_wheels(root)


def _collect_wheels(root: Path) -> None:
    """All that pip will ask for, but for Eva itself, for the Python of the machine."""
    python = (root / "usr/bin/python3").readlink().name.removeprefix("python")
    folder = root / _WHEELS
    folder.mkdir()
    locked = re.findall(r"^[\w.-]+==[^\\\n]+", _lock_text(), re.MULTILINE)
    eva = software.packed()
    with tempfile.TemporaryDirectory() as scratch:
        constraints, wheel = Path(scratch, "constraints.txt"), Path(scratch, eva.name)
        constraints.write_text("\n".join(locked))
        wheel.write_bytes(eva.content)
        _said(
            sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:",
            "--python-version", python, "--constraint", str(constraints), "--dest", str(folder),
            f"{wheel}[{EXTRAS}]",
        )  # fmt: skip
    (folder / eva.name).unlink()


def _lock_text() -> str:
    return (REPOSITORY / "requirements.lock").read_text()


def _import(api: docker.APIClient, root: Path, name: str) -> None:
    repository, _, tag = name.partition(":")
    with subprocess.Popen(
        ["tar", "--create", "--numeric-owner", "--directory", str(root), "."],
        stdout=subprocess.PIPE,
    ) as tar:
        api.import_image_from_stream(tar.stdout, repository=repository, tag=tag)
    if tar.returncode:
        raise NoMachineImageError(f"a tar that works: it ended with {tar.returncode}")


def _said(*words: str) -> str:
    done = subprocess.run(
        words,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        told = (done.stdout + done.stderr)[-2_000:]
        raise NoMachineImageError(f"{words[0]} that works; it said: {told}")
    return done.stdout
