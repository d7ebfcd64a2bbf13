"""Submissions over HTTP: a burst to fill the cluster, then a steady stream.

The stream is open: each submission has its time, and leaves then whether or not the ones before are
answered. Its latency counts from that time, so a master that stalls is charged for everybody who
had to wait, and not only for the one whom it was answering.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from eva.master.client import Connection
from eva.master.words import API, Submission, Submitted

_TIMEOUT_S = 60.0
_AT_ONCE = 256  # connections; more would wait for one
_BURST_AT_ONCE = 24


@dataclass(frozen=True, slots=True)
class Answer:
    """`due_s` on the monotonic clock; `job` is empty where there was no acceptance."""

    due_s: float
    took_s: float
    key: str
    job: str
    problem: str = ""


@dataclass
class Submitter:
    connection: Connection
    job_file: Callable[[], str]
    answers: list[Answer] = field(default_factory=list)
    sent: int = 0

    def __post_init__(self) -> None:
        self._http = httpx.AsyncClient(
            base_url=self.connection.url + API,
            headers={"Authorization": f"Bearer {self.connection.token}"},
            timeout=_TIMEOUT_S,
            limits=httpx.Limits(max_connections=_AT_ONCE, max_keepalive_connections=_AT_ONCE),
            trust_env=False,
        )

    async def burst(self, count: int) -> None:
        """As fast as they are answered."""
        left = iter(range(count))

        async def some() -> None:
            for _ in left:
                await self._submit(time.monotonic())

        async with asyncio.TaskGroup() as group:
            for _ in range(_BURST_AT_ONCE):
                group.create_task(some())

    async def stream(self, rate: float, end: asyncio.Event) -> None:
        """`rate` per second, evenly, until the end; whatever is under way then is awaited."""
        began_s, number = time.monotonic(), 0
        async with asyncio.TaskGroup() as group:
            while not end.is_set():
                due_s = began_s + number / rate
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
                group.create_task(self._submit(due_s))
                number += 1

    async def _submit(self, due_s: float) -> None:
        self.sent += 1
        key = f"load-{self.sent}"
        submission = Submission(job_file=self.job_file(), source=f"{key}.yaml", key=key)
        job, problem = "", ""
        try:
            answer = await self._http.post("/jobs", json=submission.model_dump())
            if answer.is_success:
                job = Submitted.model_validate_json(answer.content).job
            else:
                problem = f"HTTP {answer.status_code}: {answer.text[:200]}"
        except httpx.HTTPError as error:
            problem = repr(error)
        self.answers.append(Answer(due_s, time.monotonic() - due_s, key, job, problem))

    async def close(self) -> None:
        await self._http.aclose()
