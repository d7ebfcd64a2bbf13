from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eva import __version__
from tests.support.requirements import REPOSITORY
from tests.unit.cli.conftest import Eva


def test_help_lists_the_commands(eva: Eva) -> None:
    outcome = eva("--help")
    assert outcome.code == 0
    for command in ("solve", "catalog"):
        assert command in outcome.out
    assert "Exit codes" in outcome.out


def test_version(eva: Eva) -> None:
    assert eva("--version").out == f"eva {__version__}\n"


def test_a_mistyped_command_suggests(eva: Eva) -> None:
    outcome = eva("solv")
    assert outcome.code == 2
    assert "Did you mean 'solve'?" in outcome.err


@pytest.mark.parametrize(
    ("module", "words", "package"),
    [
        ("fastapi", ("serve", "--port", "0"), "eva-scheduler[server]"),
        ("grpc", ("serve", "--port", "0"), "eva-scheduler[server]"),
        ("eva_iterator", ("serve", "--port", "0"), "eva-iterator"),
    ],
)
def test_a_package_that_is_missing_is_said_with_what_brings_it(
    tmp_path: Path, module: str, words: tuple[str, ...], package: str
) -> None:
    script = (
        f"import sys; sys.modules[{module!r}] = None; sys.argv = {['eva', *words]!r}\n"
        "from eva.cli.main import main\n"
        "main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "EVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = f"error: this needs {module}, which is not installed: pip install '{package}'\n"
    assert (ended.returncode, ended.stderr) == (1, said)


def test_a_client_needs_no_extra() -> None:
    """What reaches a cluster elsewhere is installed in seconds."""
    packages = ("fastapi", "grpc", "structlog", "uvicorn", "cryptography", "boto3", "docker")
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({packages!r}))\n"
        "sys.argv = ['eva', 'queue']\n"
        "from eva.cli.main import main\n"
        "main()"
    )
    elsewhere = {**os.environ, "EVA_URL": "http://127.0.0.1:9", "EVA_TOKEN": "x"}
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env=elsewhere,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: "), ended.stderr
    assert "127.0.0.1:9" in ended.stderr


def test_help_loads_nothing_heavy() -> None:
    """What keeps `eva --help` under 300 ms."""
    script = (
        "import sys; sys.argv = ['eva', '--help']\n"
        "from eva.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'highspy', 'rich', 'pydantic', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    script = "from eva.cli.main import app; app(prog_name='eva')"
    environment = {**os.environ, "_EVA_COMPLETE": f"source_{shell}"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=environment,
    )
    assert "eva" in done.stdout


def test_a_reader_that_stops_early_is_no_error() -> None:
    """`eva catalog show aws | head -1`"""
    eva = "import sys; from eva.cli.main import main; sys.argv = ['eva', 'catalog', 'show', 'aws']"
    done = subprocess.run(
        ["bash", "-c", f'{sys.executable} -c "{eva}; main()" | head -1'],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=REPOSITORY,
    )
    assert done.stdout.startswith("type")
    assert done.stderr == ""
