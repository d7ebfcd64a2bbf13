"""The wheel that instances install: what is in it, that it runs, and that it goes up once."""

from __future__ import annotations

import io
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

import eva
from eva.adapters.aws import software
from eva.adapters.aws.software import packed, publish, wheel_of
from eva.model.errors import OperatorError
from eva.ports.storage import StorageAccessError
from tests.support.moto_server import REGION, aws_credentials, direct_client

__all__ = ["aws_credentials"]  # a fixture by being here
METADATA = "Metadata-Version: 2.1\nName: eva-scheduler\nVersion: 0.1.0\n\nVersion: 0.1.0\n"


def names(content: bytes) -> set[str]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return set(archive.namelist())


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """Of an environment into which pip has put the wheel, with nothing else of Eva in it."""
    environment = tmp_path / "environment"
    python = environment / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    wheel = packed()
    (tmp_path / wheel.name).write_bytes(wheel.content)
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", str(python)]
    asked = ["install", "--no-deps", "--no-index", str(tmp_path / wheel.name)]
    subprocess.run([*pip, *asked], check=True)
    # What Eva depends on is borrowed; a folder named so does not bring its own .pth files along.
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


def said(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    return done.stdout


def test_the_wheel_installs_and_runs(bin_folder: Path) -> None:
    where = "import eva, eva.worker.serving; from importlib.metadata import version; "
    shown = said(
        bin_folder / "python", "-c", f"{where} print(eva.__file__, version('eva-scheduler'))"
    )
    assert shown.startswith(str(bin_folder.parent))
    assert shown.split()[1] == packed().name.split("-")[1]
    assert said(bin_folder / "eva", "--version") == f"eva {eva.__version__}\n"
    # It speaks with tasks as EvaIterator does, and comes from the same place.
    assert said(
        bin_folder / "python", "-c", "import eva_iterator; print(eva_iterator.__file__)"
    ).startswith(str(bin_folder.parent))
    assert "--bootstrap-file" in said(bin_folder / "python", "-m", "eva.worker", "--help")
    # Data came along: a catalog is read from the package.
    assert "p3.2xlarge" in said(bin_folder / "eva", "catalog", "show", "paper")


def test_it_carries_the_package_and_what_pip_needs_and_no_litter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "eva"
    (package / "__pycache__").mkdir(parents=True)
    (package / ".cache").mkdir()
    for name in ("__init__.py", "data.json", "__pycache__/x.pyc", ".x.py.swp", ".cache/y.py"):
        (package / name).write_text("")
    monkeypatch.setattr(eva, "__file__", str(package / "__init__.py"))
    inside = {name for name in names(packed().content) if ".dist-info/" not in name}
    ours = {name for name in inside if name.startswith("eva/")}
    assert ours == {"eva/__init__.py", "eva/data.json"}
    assert "eva_iterator/protocol.py" in inside
    assert {name.partition("/")[0] for name in inside} == {"eva", "eva_iterator"}


def test_equal_content_has_equal_bytes_and_other_content_another_name() -> None:
    first = wheel_of({"eva/a.py": b"1", "eva/b.py": b"2"}, METADATA, "")
    again = wheel_of({"eva/b.py": b"2", "eva/a.py": b"1"}, METADATA, "")
    changed = wheel_of({"eva/a.py": b"1", "eva/b.py": b"3"}, METADATA, "")
    assert first == again
    assert changed.name != first.name
    needs_more = wheel_of({"eva/a.py": b"1", "eva/b.py": b"2"}, f"{METADATA}x", "")
    assert needs_more.name != first.name


def test_the_version_says_which_code_it_is_and_the_description_is_left_alone() -> None:
    wheel = wheel_of({}, METADATA, "")
    version = wheel.name.split("-")[1]
    assert version.startswith("0.1.0+")
    with zipfile.ZipFile(io.BytesIO(wheel.content)) as archive:
        metadata = archive.read(f"eva_scheduler-{version}.dist-info/METADATA").decode()
    assert metadata.splitlines()[2:] == [f"Version: {version}", "", "Version: 0.1.0"]
    local = wheel_of({}, METADATA.replace("0.1.0", "0.1.0+mine"), "")
    assert local.name.split("-")[1].startswith("0.1.0+mine.")


@pytest.mark.usefixtures("aws_credentials")
def test_it_goes_up_once(moto_address: tuple[str, int]) -> None:
    client: Any = direct_client("s3", moto_address)
    endpoint = "http://{}:{}".format(*moto_address)
    with pytest.raises(StorageAccessError, match="NoSuchBucket"):
        publish("eva-software", REGION, endpoint)
    client.create_bucket(Bucket="eva-software")
    try:
        url = publish("eva-software", REGION, endpoint)
        assert url == f"s3://eva-software/software/{packed().name}"
        key = f"software/{packed().name}"
        assert client.get_object(Bucket="eva-software", Key=key)["Body"].read() == packed().content
        client.put_object(Bucket="eva-software", Key=key, Body=b"left alone")
        assert publish("eva-software", REGION, endpoint) == url
        assert client.get_object(Bucket="eva-software", Key=key)["Body"].read() == b"left alone"
    finally:
        client.delete_object(Bucket="eva-software", Key=f"software/{packed().name}")
        client.delete_bucket(Bucket="eva-software")
        client.close()


def _missing(name: str) -> None:
    raise PackageNotFoundError(name)


def test_an_eva_that_nobody_installed_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "distribution", _missing)
    with pytest.raises(OperatorError, match="is not installed here"):
        packed()


def test_metadata_without_a_version_are_refused() -> None:
    with pytest.raises(OperatorError, match="install it anew"):
        wheel_of({}, "Name: eva-scheduler\n", "")
