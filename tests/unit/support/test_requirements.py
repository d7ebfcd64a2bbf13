"""In CI a skip is a failure, however it came about; on a laptop it is a skip with its reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.requirements import REPOSITORY

SKIPS = {
    "require": (
        "from tests.support.requirements import require\n"
        "def test_it(): require(False, 'no docker here')\n"
    ),
    "skip": "import pytest\ndef test_it(): pytest.skip('no docker here')\n",
    "mark": (
        "import pytest\n@pytest.mark.skipif(True, reason='no docker here')\ndef test_it(): pass\n"
    ),
    "module": "import pytest\npytest.skip('no docker here', allow_module_level=True)\n",
}


def run(tmp_path: Path, source: str, required: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "test_it.py").write_text(source)
    options = ("-p", "no:cacheprovider", "-p", "tests.conftest", "-c", os.devnull, "-rs")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--rootdir={tmp_path}", str(tmp_path)],
        cwd=REPOSITORY,
        env={**os.environ, "EVA_REQUIRE_ALL": required, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("kind", SKIPS)
def test_a_skip_is_a_failure_where_everything_is_required(tmp_path: Path, kind: str) -> None:
    done = run(tmp_path, SKIPS[kind], "1")
    assert done.returncode not in {0, 5}, done.stdout
    assert "required" in done.stdout


def test_and_a_skip_with_its_reason_elsewhere(tmp_path: Path) -> None:
    done = run(tmp_path, SKIPS["require"], "")
    assert done.returncode == 0
    assert "no docker here" in done.stdout


def test_a_passing_test_passes_in_ci(tmp_path: Path) -> None:
    assert run(tmp_path, "def test_it(): pass\n", "1").returncode == 0
