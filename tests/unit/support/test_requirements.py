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


def run(
    tmp_path: Path, source: str, required: str, shared: str = ""
) -> subprocess.CompletedProcess[str]:
    (tmp_path / "test_it.py").write_text(source)
    settings = tmp_path / "pytest.ini"
    settings.write_text("[pytest]\nmarkers =\n    published: as in pyproject.toml\n")
    options = ("-p", "no:cacheprovider", "-p", "tests.conftest", "-c", str(settings), "-rs")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--rootdir={tmp_path}", str(tmp_path)],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "EVA_REQUIRE_ALL": required,
            "PYTHONPATH": str(REPOSITORY),
            "EVA_SHARED": shared,
        },
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


PUBLISHED = "import pytest\n@pytest.mark.published\ndef test_it(): pass\ndef test_other(): pass\n"


def test_published_data_is_read_where_it_is_and_left_out_elsewhere(tmp_path: Path) -> None:
    there = run(tmp_path, PUBLISHED, "1", shared=str(tmp_path))
    assert (there.returncode, "2 passed" in there.stdout) == (0, True)
    absent = run(tmp_path, PUBLISHED, "1", shared=str(tmp_path / "absent"))
    assert absent.returncode == 0
    assert "1 passed, 1 deselected" in absent.stdout
    assert "published data: left out" in absent.stdout
