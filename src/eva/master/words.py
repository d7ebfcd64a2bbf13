"""The words of the HTTP API: what goes over the wire, typed for both sides and for OpenAPI.

Units are last in the names, as everywhere: times in milliseconds since the epoch, money in
micro-dollars. Fields may be added within `/api/v1`, never removed or changed.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

API = "/api/v1"


def _encodable(text: str) -> str:
    """JSON can spell halves of characters, which nothing further down can pass on."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("holds half of a character (a lone surrogate)") from None
    return text


Given = Annotated[str, AfterValidator(_encodable)]
Source = Annotated[str, StringConstraints(max_length=4_096), AfterValidator(_encodable)]


class Word(BaseModel):
    model_config = ConfigDict(frozen=True)


class Fault(Word):
    """What went wrong, and every problem with its place where there are several."""

    kind: str
    message: str
    problems: list[list[str]] = []


class Submission(Word):
    """A job file as text. Of two submissions with one `key` the first is what counts."""

    job_file: Given
    source: Source = "job.yaml"
    workdir: Given | None = None
    secrets: dict[Given, Given] = {}
    key: Given | None = None


class Submitted(Word):
    job: str
    repeated: bool = False  # this key was submitted before: nothing new was accepted


class PreviewInstance(Word):
    type: str
    hourly_micros: int
    instance: str | None  # a present one, or None for one to be launched
    tasks: int
    beside: list[str]
    risk_micros: int = 0  # of interruption, per hour: decided by, not billed


class Preview(Word):
    """Where the job would go if the next round were now, and what would change in the bill."""

    instances: list[PreviewInstance]
    hourly_micros_before: int
    hourly_micros_after: int
    alone_hourly_micros: int  # every task on the cheapest instance of its own
    unplaceable: list[str]

    @property
    def added_micros(self) -> int:
        return self.hourly_micros_after - self.hourly_micros_before


class TaskOut(Word):
    id: str
    state: str
    epoch: int
    instance: str | None
    bound_for: str | None
    iterations_per_s: float
    reason: str


class JobOut(Word):
    id: str
    name: str
    state: str
    submitted_ms: int
    first_start_ms: int | None
    ended_ms: int | None
    failures: int
    migrations: int
    reason: str
    workload: str | None = None
    demand: str | None = None
    nodes: int | None = None
    priority: int | None = None
    tasks: list[TaskOut] = []

    @property
    def over(self) -> bool:
        return self.ended_ms is not None


class InstanceOut(Word):
    id: str
    type: str
    state: str
    hourly_micros: int
    launched_ms: int
    acquired_ms: int | None
    ready_ms: int | None
    ended_ms: int | None
    ended_by: str
    uptime_ms: int
    cost_micros: int
    capacity: str = ""
    worth_micros: int = 0
    tasks: list[str] = []
    risk_micros: int = 0  # as at its launch


class CandidateOut(Word):
    name: str
    hourly_micros: int  # the risk of interruptions included
    saving_micros: int
    migration_micros: int
    migrated_tasks: int
    launched_instances: int
    net_micros: int | None  # saving x horizon - migration; None under an infinite horizon


class DecisionOut(Word):
    round: int
    time_ms: int
    chosen: str
    horizon_hours: float | None
    reason: str
    candidates: list[CandidateOut]
    launched: list[list[str]]
    terminated: list[str]
    moved: list[str]
    started: list[str]
    unplaceable: list[str]
    hourly_micros_before: int
    hourly_micros_after: int
    text: str


class ShareOut(Word):
    workload: str
    tasks: list[str]
    alone_on: str
    alone_micros: int
    throughput: float
    worth_micros: int


class ReasonOut(Word):
    instance: str
    type: str
    hourly_micros: int
    worth_micros: int
    apart_micros: int
    shares: list[ShareOut]
    risk_micros: int = 0
    risk_text: str = ""


class Explanation(Word):
    subject: str
    text: str
    instances: list[ReasonOut]
    decision: DecisionOut | None
    waiting: list[str]


class EventOut(Word):
    number: int
    time_ms: int
    kind: str
    text: str
    job: str | None
    instance: str | None


class Cluster(Word):
    cluster: str
    version: str
    policy: str
    catalog: str
    now_ms: int
    round: int
    period_ms: int
    live_jobs: int
    ended_jobs: int
    instances: int
    hourly_micros: int
    bill_micros: int
    migrations: int
    full_reconfigurations: int


class TokenOut(Word):
    name: str
    made_ms: int
    token: str | None = None  # shown once, when it is made


class LogLine(Word):
    task: str
    text: str


class WorkdirStored(Word):
    digest: str
