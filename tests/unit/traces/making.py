"""Small trace files and catalogs for the tests of this folder."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from eva.model.catalog import Catalog, InstanceType
from eva.model.errors import InputError
from eva.model.resources import Resources
from eva.traces.load import load_trace
from eva.traces.trace import Trace

GB = 1024


def catalog() -> Catalog:
    """One GPU type and one CPU type of the paper, enough to be too small for something."""
    return Catalog(
        "two",
        (
            InstanceType("p3.16xlarge", "p3", Resources(8, 64_000, 488 * GB), 24_480_000),
            InstanceType("c7i.2xlarge", "c7i", Resources(0, 8_000, 16 * GB), 357_000),
        ),
    )


CATALOG = catalog()

_JOB: dict[str, Any] = {
    "name": "gcn[0]",
    "arrival_time": 10,
    "duration": 100,
    "init_delay": 28,
    "full_throughput": 0.5,
    "total_iters": 50,
    "support_throughput_aware": True,
    "tasks": {
        "0": {
            "name": "node0",
            "demand": {"any": [1, 4, 16]},
            "shm_size": 8,
            "image_id": 2,
            "fetch_delay": 1,
            "build_image_delay": 10,
            "kill_delay": 1,
            "upload_delay": 1.5,
        }
    },
}


def artifact_job(**changes: object) -> dict[str, Any]:
    return copy.deepcopy(_JOB) | changes


def artifact_task(**changes: object) -> dict[str, Any]:
    """The tasks of a job that has one, changed."""
    return {"0": copy.deepcopy(_JOB["tasks"]["0"]) | changes}


POD_HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time"
)


def pods(*rows: str) -> str:
    return "\n".join([POD_HEADER, *rows]) + "\n"


OWN_HEADER = "job,arrival_ms,duration_ms,workload,gpus,cpu_millis,memory_mib"


def own(*rows: str, more: str = "") -> str:
    return "\n".join([OWN_HEADER + more, *rows]) + "\n"


def load(path: Path, content: str | bytes, name: str = "trace") -> Trace:
    file = path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_trace(file, CATALOG)


def complaints(error: InputError, path: Path) -> list[str]:
    """All problems as text, without the folder."""
    return [str(problem).replace(f"{path}/", "") for problem in error.problems]
