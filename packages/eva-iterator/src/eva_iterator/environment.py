"""What Eva tells a task through its environment, read once.

`EVA_SOCKET` missing means that nobody listens; `EVA_CHECKPOINT_DIR` missing means that there is
nowhere to checkpoint to. With both missing the task runs outside Eva, and all of this package
does nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping

from eva_iterator.errors import EvaIteratorError
from eva_iterator.throughput import DEFAULT_WINDOW_MS


@dataclass(frozen=True)
class Environment:
    socket: str | None
    job_dir: Path | None
    checkpoint_dir: Path | None
    restore_dir: Path | None
    window_ms: int
    leads: bool  # of several processes in one task, only that of LOCAL_RANK 0 talks to the worker

    @property
    def inside_eva(self) -> bool:
        return self.socket is not None or self.checkpoint_dir is not None

    @classmethod
    def read(cls, variables: Mapping[str, str] | None = None) -> Environment:
        variables = os.environ if variables is None else variables
        return cls(
            socket=variables.get("EVA_SOCKET") or None,
            job_dir=_path(variables, "EVA_JOB_DIR"),
            checkpoint_dir=_path(variables, "EVA_CHECKPOINT_DIR"),
            restore_dir=_path(variables, "EVA_RESTORE_DIR"),
            window_ms=_window_ms(variables.get("EVA_WINDOW_S", "")),
            leads=variables.get("LOCAL_RANK", "0") == "0",
        )


def _path(variables: Mapping[str, str], name: str) -> Path | None:
    value = variables.get(name)
    return Path(value) if value else None


def _window_ms(text: str) -> int:
    if not text:
        return DEFAULT_WINDOW_MS
    try:
        window_ms = int(float(text) * 1000)
    except (ValueError, OverflowError):
        window_ms = 0
    if window_ms <= 0:
        raise EvaIteratorError(f"EVA_WINDOW_S is {text!r}: give seconds, more than zero")
    return window_ms
