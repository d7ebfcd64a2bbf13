"""One cell of an experiment: one policy, one value of a parameter, one seed.

A cell says everything that its figures depend on, the code included, so a hash of it names its
result for good: a cell that was run once is never run again, and one whose code or trace has
changed is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from eva.evaluation.references import Bounds
from eva.traces.content import read_bytes

_BOUNDS_POLICY = "(bounds)"
# The rooms whose code decides what a cell yields; how it is shown does not.
_ROOMS = ("model", "scheduling", "control", "simulator", "traces", "catalogs", "inputs")
_OWN_FILES = ("cell.py", "cell_run.py", "no_packing.py", "references.py", "report.py")


@dataclass(frozen=True, slots=True)
class TraceSource:
    """A trace that is made from nothing, or a file known by its content."""

    name: str
    file: str | None = None
    digest: str | None = None

    @classmethod
    def of(cls, name: str, file: Path | None) -> TraceSource:
        """Only the end-to-end traces come from the user's file."""
        if file is None or name not in {"alibaba", "gavel"}:
            return cls(name)
        return cls(name, str(file.absolute()), _digest_of_file(file))


@dataclass(frozen=True, slots=True)
class Cell:
    """Parameters that are None are left as the trace has them."""

    kind: str
    source: TraceSource
    policy: str
    seed: int
    cpus: str = "vcpus"
    first: int | None = None
    tasks: int | None = None
    interference: float | None = None
    delay_factor: float | None = None
    multi_gpu: float | None = None
    multi_task: float | None = None
    jobs_per_hour: float | None = None
    wanted_bounds: str = Bounds.NONE.value

    def with_parameter(self, parameter: str | None, value: float | None) -> Cell:
        if parameter is None or value is None:
            return self
        changes: dict[str, Any] = {parameter: int(value) if parameter == "tasks" else value}
        return replace(self, **changes)

    def of(self, policy: str, seed: int) -> Cell:
        return replace(self, policy=policy, seed=seed)

    def bounds(self, wanted: Bounds, seed: int) -> Cell:
        """The cell that works out references instead of simulating a policy."""
        return replace(self, policy=_BOUNDS_POLICY, seed=seed, wanted_bounds=wanted.value)

    @property
    def is_bounds(self) -> bool:
        return self.policy == _BOUNDS_POLICY

    @property
    def key(self) -> str:
        """Where the file lies does not matter, what is in it does."""
        told = asdict(self)
        told["source"]["file"] = None
        told["code"] = code_version()
        text = json.dumps(told, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def as_json(self) -> Mapping[str, Any]:
        return asdict(self)


@cache
def code_version() -> str:
    """A digest of all code and data files that a cell's figures depend on."""
    found = hashlib.sha256()
    package = resources.files("eva")
    for room in _ROOMS:
        _add(found, room, package.joinpath(room))
    for name in _OWN_FILES:
        _add(found, name, package.joinpath("evaluation", name))
    return found.hexdigest()[:16]


def _add(found: Any, path: str, entry: Traversable) -> None:
    if entry.is_dir():
        for child in sorted(entry.iterdir(), key=lambda child: child.name):
            if child.name != "__pycache__":
                _add(found, f"{path}/{child.name}", child)
    else:
        content = entry.read_bytes()
        found.update(f"{path} {len(content)}\n".encode() + content)


@cache
def _digest_of_file(path: Path) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()[:16]
