"""`eva` as a shell starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

EVA = (sys.executable, "-c", "from eva.cli.main import main; main()")


def run(home: Path, *words: str, code: int = 0, stdin: str = "", **env: str) -> str:
    """What `eva WORDS` says on both streams, once it has ended with `code`."""
    answer = subprocess.run(
        [*EVA, *words],
        env=os.environ | {"EVA_HOME": str(home)} | env,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    said = answer.stdout + answer.stderr
    assert answer.returncode == code, said
    assert "Traceback" not in said
    return said


def read(home: Path, *words: str) -> Any:
    return json.loads(run(home, *words, "--json"))
