"""From a submitted job file to an accepted job: read, refused with reasons, or made durable.

Nothing is accepted that no instance type could ever host. A submission with a key that was used
before is answered as it was then; the key and the job become durable in one transaction.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from eva.control.events import JobSubmitted
from eva.inputs import job_file
from eva.inputs.job_file import JobFile
from eva.master.definitions import define, job_spec, workload_of
from eva.master.measured import Measured
from eva.master.memory import Memory
from eva.master.secrets import Vault
from eva.master.words import Submission, Submitted
from eva.master.writer import Writer
from eva.model.errors import EvaError, InputError
from eva.model.ids import JobId
from eva.model.jobs import JobSpec
from eva.ports.journal import Fact
from eva.scheduling.reservation_price import price_book, why_unplaceable

KEYS = "submit/"
_LONGEST_KEY = 200


class KeyReusedError(EvaError):
    """The same idempotency key came with another job."""

    exit_code = 2


@dataclass(slots=True)
class JobDesk:
    """Where jobs are handed in."""

    memory: Memory
    writer: Writer
    vault: Vault
    measured: Measured
    containers: bool = True  # whether workers can run images
    numbered: int = 0

    def start(self) -> None:
        """Go on numbering where the last master stopped."""
        state = self.memory.state
        self.numbered = max(map(_number, (*state.jobs, *state.records)), default=0)

    def read(self, submission: Submission) -> tuple[JobFile, JobSpec]:
        """The job as it would be accepted, or an InputError with everything that is wrong."""
        file = job_file.parse(submission.job_file, submission.source)
        if file.workdir is not None and submission.workdir is None:
            raise InputError.single(
                submission.source, "has a workdir, and it was not uploaded: use `eva submit`"
            )
        if (file.image or file.dockerfile) and not self.containers:
            raise InputError.single(
                submission.source,
                "names an image or a dockerfile, and this cluster runs tasks as plain processes: "
                "start it with --runtime docker",
            )
        if file.file_mounts and submission.workdir is None:
            raise InputError.single(
                submission.source, "has file_mounts that were not uploaded: use `eva submit`"
            )
        delays = self.measured.of(workload_of(file, submission.workdir))
        spec = job_spec(file, submission.workdir, delays)
        task = spec.tasks[0]
        catalog = self.memory.controller.offer.catalog
        if price_book(catalog).price(task) is None:
            raise InputError.single(
                f"{submission.source}: resources", why_unplaceable(catalog, task)
            )
        return file, spec

    async def submit(self, submission: Submission, by: str) -> Submitted:
        file, spec = self.read(submission)
        secrets = job_file.missing_secrets(file, submission.secrets)
        self.numbered += 1
        job = JobId(f"{file.name}-{self.numbered}")
        sealed = self.vault.seal(secrets)
        definition = define(job, file, submission.workdir, sealed, by)
        claim = None
        if submission.key is not None:
            claim = _Claim(_checked(submission.key), job, _request_digest(submission))
        appended = await self.writer.submit(JobSubmitted(job, spec), definition, claim)
        if appended.earlier is None:
            return Submitted(job=job)
        answered: dict[str, Any] = json.loads(appended.earlier.value)
        if claim is not None and answered["request"] != claim.request:
            raise KeyReusedError(
                f"idempotency key {submission.key!r} was used for {answered['job']}, with another "
                "job file: use a new key"
            )
        return Submitted(job=answered["job"], repeated=True)


@dataclass(frozen=True, slots=True)
class _Claim:
    key: str
    job: JobId
    request: str

    def __call__(self, now_ms: int) -> Fact:
        value = json.dumps({"job": self.job, "request": self.request}).encode()
        return Fact(f"{KEYS}{self.key}", value, now_ms)


def _checked(key: str) -> str:
    if not key or len(key) > _LONGEST_KEY or not key.isprintable():
        raise InputError.single("key", f"must be 1 to {_LONGEST_KEY} printable characters")
    return key


def _request_digest(submission: Submission) -> str:
    content = json.dumps([submission.job_file, submission.workdir])
    return hashlib.sha256(content.encode()).hexdigest()


def _number(job: str) -> int:
    tail = job.rpartition("-")[2]
    return int(tail) if tail.isdecimal() else 0


def known_jobs(memory: Memory) -> Iterable[str]:
    yield from memory.state.records
    yield from memory.state.jobs
