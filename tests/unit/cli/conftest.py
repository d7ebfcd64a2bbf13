"""The command line as a user starts it: the real entry point, in this process."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from eva.cli.main import main


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Eva = Callable[..., Outcome]


@pytest.fixture
def eva(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Eva:
    """`eva("solve", "--tasks", ...)`; `stdin=` and `columns=` set what the shell would."""

    def run(*arguments: str, stdin: str = "", columns: int = 120) -> Outcome:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr("sys.argv", ["eva", *arguments])
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run
