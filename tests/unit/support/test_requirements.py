"""In CI a skip is a failure, however it came about; on a laptop it is a skip with its reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.requirements import REPOSITORY

# Each run of pytest takes a second, so one run holds every case.
SOURCES = {
    "test_require.py": (
        "from tests.support.requirements import require\n"
        "def test_it(): require(False, 'no docker here')\n"
    ),
    "test_skip.py": "import pytest\ndef test_it(): pytest.skip('no docker here')\n",
    "test_mark.py": (
        "import pytest\n@pytest.mark.skipif(True, reason='no docker here')\ndef test_it(): pass\n"
    ),
    "test_module.py": "import pytest\npytest.skip('no docker here', allow_module_level=True)\n",
    "test_published.py": (
        "import pytest\n@pytest.mark.published\ndef test_it(): pass\ndef test_other(): pass\n"
    ),
}


def run(tmp_path: Path, *, required: str, shared: str) -> str:
    """What pytest says about the sources above under our conftest."""
    for name, source in SOURCES.items():
        (tmp_path / name).write_text(source)
    settings = tmp_path / "pytest.ini"
    settings.write_text("[pytest]\nmarkers =\n    published: as in pyproject.toml\n")
    options = ("-p", "no:cacheprovider", "-p", "tests.conftest", "-c", str(settings))
    more = ("-rA", "--continue-on-collection-errors", f"--rootdir={tmp_path}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *more, str(tmp_path)],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "EVA_REQUIRE_ALL": required,
            "EVA_SHARED": shared,
            "PYTHONPATH": str(REPOSITORY),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout


def test_a_skip_is_a_failure_where_everything_is_required(tmp_path: Path) -> None:
    said = run(tmp_path, required="1", shared=str(tmp_path))
    assert "required, and missing: no docker here" in said
    for name in ("test_skip.py", "test_mark.py", "test_module.py"):
        assert f"{name} skipped itself" in said or f"{name}::test_it: every test is requ" in said
    assert "2 failed, 2 passed, 2 errors" in said
    assert f"published data: {tmp_path}" in said


def test_elsewhere_it_is_a_skip_and_published_data_is_left_out_visibly(tmp_path: Path) -> None:
    said = run(tmp_path, required="", shared=str(tmp_path / "absent"))
    assert said.count("no docker here") >= 3
    assert "1 passed, 4 skipped, 1 deselected" in said
    assert "published data: left out" in said
