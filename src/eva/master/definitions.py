"""What a job is to whoever starts its tasks, kept in the journal beside its `JobSubmitted`.

The controller knows demands and nothing of scripts; a definition is the other half. Secrets are in
it only as the ciphertext that `secrets` made of them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from pydantic import TypeAdapter

from eva.inputs.job_file import JobFile
from eva.model.ids import JobId, Workload
from eva.model.jobs import JobSpec, TaskDelays, TaskSpec

_FINGERPRINT_LENGTH = 10


@dataclass(frozen=True, slots=True)
class Definition:
    """`script` or `argv` is set, never both; `workdir` is the digest under which it is stored."""

    job: JobId
    name: str
    nodes: int
    script: str | None
    argv: tuple[str, ...] | None
    env: tuple[tuple[str, str], ...]
    sealed_secrets: str | None
    secret_names: tuple[str, ...]
    workdir: str | None
    image: str | None
    dockerfile: str | None
    memory_mib: int
    shm_mib: int | None
    progress_regex: str | None
    window_ms: int
    checkpoint_signal: str | None
    checkpoint_grace_ms: int
    checkpoint_path: str | None
    restart: bool
    submitted_by: str


_ADAPTER = TypeAdapter(Definition)


def encode(definition: Definition) -> bytes:
    return _ADAPTER.dump_json(definition)


def decode(payload: bytes) -> Definition:
    return _ADAPTER.validate_json(payload)


def define(
    job: JobId, file: JobFile, workdir: str | None, sealed_secrets: str | None, submitted_by: str
) -> Definition:
    argv = file.run if isinstance(file.run, tuple) else None
    return Definition(
        job=job,
        name=file.name or str(job),
        nodes=file.num_nodes,
        script=None if argv is not None else _script(file),
        argv=argv,
        env=tuple(file.envs.items()),
        sealed_secrets=sealed_secrets,
        secret_names=tuple(file.secrets),
        workdir=workdir,
        image=file.image,
        dockerfile=file.dockerfile,
        memory_mib=file.resources.memory,
        shm_mib=file.resources.shm_size,
        progress_regex=file.progress.regex,
        window_ms=file.progress.window,
        checkpoint_signal=file.checkpoint.signal,
        checkpoint_grace_ms=file.checkpoint.grace,
        checkpoint_path=file.checkpoint.path,
        restart=file.checkpoint.restart,
        submitted_by=submitted_by,
    )


def _script(file: JobFile) -> str:
    """Setup runs in the same shell, so that what it exports is seen by `run`."""
    parts = [part for part in (file.setup, file.run) if isinstance(part, str)]
    return "\n".join(parts)


def job_spec(file: JobFile, workdir: str | None, delays: TaskDelays) -> JobSpec:
    """The half that the controller is given."""
    task = TaskSpec(workload_of(file, workdir), file.resources.demand, file.standalone, delays)
    return JobSpec(
        file.name or "job",
        (task,) * file.num_nodes,
        file.retries,
        file.max_duration,
        file.priority,
    )


def workload_of(file: JobFile, workdir: str | None) -> Workload:
    """Equal for jobs that will behave alike: what they run, in what, and with how much.

    The content of the workdir counts only where it decides what is built.
    """
    if file.workload is not None:
        return Workload(file.workload)
    demand = file.resources.demand  # where it may run does not change how it behaves
    content = json.dumps(
        [
            file.image,
            file.dockerfile and [file.dockerfile, workdir],
            file.setup,
            file.run,
            file.num_nodes,
            f"Demand(default={demand.default!r}, per_family={demand.per_family!r})",
        ]
    )
    digest = hashlib.sha256(content.encode()).hexdigest()[:_FINGERPRINT_LENGTH]
    return Workload(f"{file.name}-{digest}")
