"""The Eva that runs here as a wheel in the cluster's bucket, for instances to install.

A worker must speak the master's protocol, so an instance installs what the master itself runs and
not what a package index calls the newest. The wheel is packed from the installed package, editable
or not: its files and its metadata, and with it EvaIterator, without which no worker runs and whose
protocol must be the worker's too. It has a name by its content, so one that is in the bucket
already is the right one, and changed code never hides under an old name.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import eva_iterator

import eva
from eva.adapters.s3 import Bucket, Location
from eva.model.errors import OperatorError

SOFTWARE_PREFIX = "software"  # of the bucket, beside what jobs keep

_DISTRIBUTION = "eva-scheduler"
_OLDEST = (1980, 1, 1, 0, 0, 0)  # that an archive can hold: equal content makes equal bytes
_MODE = 0o100644 << 16
_WHEEL = "Wheel-Version: 1.0\nGenerator: eva\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@dataclass(frozen=True, slots=True)
class Wheel:
    name: str
    content: bytes


def publish(bucket: str, region: str, endpoint: str | None = None) -> str:
    """Put the wheel into the bucket, unless it is there; its URL, for `AwsSettings.software`."""
    wheel = packed()
    store = Bucket(Location(bucket, SOFTWARE_PREFIX, endpoint, region))
    if store.size(wheel.name) is None:
        store.put(wheel.name, io.BytesIO(wheel.content))
    return f"s3://{bucket}/{SOFTWARE_PREFIX}/{wheel.name}"


def packed() -> Wheel:
    """The Eva that runs here."""
    metadata, entry_points = _described()
    files = _files(Path(eva.__file__).parent) | _files(Path(eva_iterator.__file__).parent)
    return wheel_of(files, metadata, entry_points)


def wheel_of(files: Mapping[str, bytes], metadata: str, entry_points: str) -> Wheel:
    """`files` by their names in site-packages; equal arguments make equal bytes."""
    told = _digest({**files, "METADATA": metadata.encode(), "WHEEL": _WHEEL.encode()})
    version = _field(metadata, "Version")
    local = f"{version}{'.' if '+' in version else '+'}{told}"
    folder = f"{_DISTRIBUTION.replace('-', '_')}-{local}"
    info = f"{folder}.dist-info"
    packed_files = {
        **files,
        f"{info}/METADATA": metadata.replace(
            f"\nVersion: {version}\n", f"\nVersion: {local}\n", 1
        ).encode(),
        f"{info}/WHEEL": _WHEEL.encode(),
        f"{info}/entry_points.txt": entry_points.encode(),
    }
    packed_files[f"{info}/RECORD"] = _record(packed_files, f"{info}/RECORD")
    return Wheel(f"{folder}-py3-none-any.whl", _archive(packed_files))


def _described() -> tuple[str, str]:
    """What pip is told about this Eva."""
    try:
        found = distribution(_DISTRIBUTION)
    except PackageNotFoundError as error:
        raise OperatorError(
            f"{_DISTRIBUTION} is not installed here, so there is no telling what an instance needs "
            "to run it: install it (pip install .), or use an image with Eva in it"
        ) from error
    return found.read_text("METADATA") or "", found.read_text("entry_points.txt") or ""


def _files(package: Path) -> dict[str, bytes]:
    """Code and data. What editors and Python leave behind is neither."""
    found = {}
    for path in sorted(package.rglob("*")):
        inside = path.relative_to(package.parent)
        left_behind = path.suffix == ".pyc" or any(
            part.startswith(".") or part == "__pycache__" for part in inside.parts
        )
        if path.is_file() and not left_behind:
            found[inside.as_posix()] = path.read_bytes()
    return found


def _field(metadata: str, name: str) -> str:
    for line in metadata.splitlines():
        if line.startswith(f"{name}: "):
            return line.removeprefix(f"{name}: ")
    raise OperatorError(f"the metadata of {_DISTRIBUTION} name no {name}: install it anew")


def _digest(files: Mapping[str, bytes]) -> str:
    whole = hashlib.sha256()
    for name, content in sorted(files.items()):
        whole.update(f"{name}\0{len(content)}\0".encode() + content)
    return whole.hexdigest()[:12]


def _record(files: Mapping[str, bytes], itself: str) -> bytes:
    lines = []
    for name, content in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    return "".join([*lines, f"{itself},,\n"]).encode()


def _archive(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _OLDEST)
            entry.external_attr = _MODE
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
