"""The HTTP API, `/api/v1`: parse, ask the master, put into words.

Everything but health and the page that describes it is behind a token.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from eva import __version__
from eva.adapters import workdir_archive
from eva.control.state import JobRecord
from eva.inputs.problems import did_you_mean
from eva.master import explain, metrics, views
from eva.master.api_faults import ClosingError, NoSuchThingError, answer_faults
from eva.master.api_limits import BoundedBodies
from eva.master.api_page import api_page
from eva.master.logs import lines
from eva.master.service import Master
from eva.master.submission import known_jobs
from eva.master.words import (
    API,
    Cluster,
    DecisionOut,
    EventOut,
    Explanation,
    Fault,
    InstanceOut,
    JobOut,
    Preview,
    Submission,
    Submitted,
    TokenOut,
    WorkdirStored,
)
from eva.model.errors import InputError
from eva.model.ids import JobId, TaskId, task_id
from eva.ports.storage import WorkdirDigest
from eva.scheduling.valuation import Valuation

MOST_WORKDIR_BYTES = 512 * 1024 * 1024
_ABOUT = (
    "Everything but health wants the header `Authorization: Bearer TOKEN`. Times are milliseconds "
    "since the epoch, money is micro-dollars. What goes wrong is answered with a Fault."
)
_PREVIEW = JobId("this job")


def make_api(master: Master, on_shutdown: Callable[[bool], None]) -> FastAPI:
    """`on_shutdown(cancel_jobs)` is called when a user asks for the end of this master."""
    app = FastAPI(title="Eva", version=__version__, description=_ABOUT, docs_url=None,
                  openapi_url=f"{API}/openapi.json", redoc_url=None,
                  responses={"default": {"model": Fault, "description": "it did not work"}},
                  )  # fmt: skip
    app.state.master = master
    app.state.on_shutdown = on_shutdown
    answer_faults(app)
    app.add_middleware(BoundedBodies, unbounded=(f"{API}/workdirs",))
    for path, method, handler, model, does in _ROUTES:
        app.add_api_route(
            f"{API}{path}", handler, methods=[method], response_model=model, description=does
        )
    app.add_api_route(
        "/metrics", _metrics, methods=["GET"], response_model=None, description="For Prometheus."
    )
    app.add_api_route(f"{API}/docs", _page, methods=["GET"], include_in_schema=False)
    return app


def _page(request: Request) -> HTMLResponse:
    return HTMLResponse(api_page(request.app.openapi()))


def _master(request: Request) -> Master:
    master: Master = request.app.state.master
    return master


_Given = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]


def _user(request: Request, given: _Given) -> str:
    return _master(request).tokens.owner(None if given is None else given.credentials)


MasterOf = Annotated[Master, Depends(_master)]
User = Annotated[str, Depends(_user)]


async def _health(master: MasterOf) -> dict[str, Any]:
    return {"cluster": master.settings.cluster, "version": __version__, "closing": master.closing}


async def _cluster(master: MasterOf, _user: User) -> Cluster:
    state, settings, now_ms = master.state, master.settings, master.clock()
    return Cluster(
        cluster=settings.cluster,
        version=__version__,
        policy=settings.policy,
        catalog=master.around.catalog.name,
        now_ms=now_ms,
        round=state.round,
        period_ms=settings.round_ms,
        live_jobs=len(state.jobs),
        ended_jobs=len(state.records),
        instances=len(state.instances),
        hourly_micros=sum(i.type.billed_micros for i in state.instances.values()),
        bill_micros=state.ledger.bill_micros(now_ms),
        migrations=state.migrations,
        full_reconfigurations=state.full_reconfigurations,
    )


# Jobs


async def _submit(master: MasterOf, user: User, submission: Submission) -> Submitted:
    if master.closing:
        raise ClosingError("the cluster is being shut down and takes no jobs: start it again")
    return await master.desk.submit(submission, user)


async def _preview(master: MasterOf, _user: User, submission: Submission) -> Preview:
    _, spec = master.desk.read(submission)
    controller, now_ms = master.memory.controller, master.clock()
    now = controller.scheduler.snapshot(now_ms)
    offered = controller.offer.at(now_ms, spot=spec.spot)
    following = explain.snapshot_with(now, offered, _PREVIEW, spec)
    before = await master.planner.plan(now)
    after = await master.planner.plan(following)
    return explain.preview(_PREVIEW, before, after, following)


async def _workdir(master: MasterOf, _user: User, request: Request) -> WorkdirStored:
    with tempfile.TemporaryDirectory() as scratch:
        with tempfile.TemporaryFile(dir=scratch) as body:
            size = 0
            async for chunk in request.stream():
                size += len(chunk)
                if size > MOST_WORKDIR_BYTES:
                    raise InputError.single(
                        "workdir",
                        f"is larger than {MOST_WORKDIR_BYTES >> 20} MiB: put data into "
                        "the job's storage instead",
                    )
                body.write(chunk)
            digest = await asyncio.to_thread(workdir_archive.digest_of, body)
            folder = Path(scratch) / "workdir"
            await asyncio.to_thread(workdir_archive.unpack, body, WorkdirDigest(digest), folder)
        stored = await asyncio.to_thread(master.around.storage.stage_workdir, folder)
    return WorkdirStored(digest=stored)


async def _jobs(
    master: MasterOf, _user: User, *, ended: Annotated[bool, Query()] = False
) -> list[JobOut]:
    over = [views.ended_job(record) for record in master.state.records.values()] if ended else []
    live = master.state.jobs.values()
    return over + [views.live_job(job, master.state.round) for job in live]


async def _job(master: MasterOf, _user: User, job: str) -> JobOut:
    return _find(master, job)


async def _cancel(master: MasterOf, _user: User, job: str) -> JobOut:
    _find(master, job)
    await master.cancel(JobId(job))
    return _find(master, job)


async def _logs(
    master: MasterOf, _user: User, job: str, *, follow: Annotated[bool, Query()] = False
) -> StreamingResponse:
    state = master.state
    name, tasks = _writers(master, job)

    async def stream() -> AsyncIterator[str]:
        def over() -> bool:
            return name not in state.jobs or master.closing

        async for task, text in lines(master.logs, tasks, follow=follow, is_over=over):
            yield json.dumps({"task": task, "text": text}) + "\n"

    return StreamingResponse(stream(), media_type="application/x-ndjson")


def _writers(master: Master, named: str) -> tuple[JobId, list[TaskId]]:
    """The job of that name with all of its tasks, or a task's job with that task alone."""
    owner, _, index = named.rpartition(".")
    is_task = index.isdecimal() and JobId(owner) in {*master.state.jobs, *master.state.records}
    job = JobId(owner if is_task else named)
    _find(master, job)
    tasks = _task_names(master, job)
    if not is_task:
        return job, tasks
    if TaskId(named) not in tasks:
        has = f"its tasks are {tasks[0]} to {tasks[-1]}" if tasks else "none of its tasks ran"
        raise NoSuchThingError(f"there is no task {named!r} of {job}; {has}")
    return job, [TaskId(named)]


def _task_names(master: Master, job: JobId) -> list[TaskId]:
    """A job that is over left no list of its tasks, but their output."""
    live = master.state.jobs.get(job)
    if live is not None:
        return [task.id for task in live.tasks]
    count = len({p.name.split(".log")[0].rpartition(".")[0] for p in master.logs.files(job)})
    return [task_id(job, index) for index in range(count)]


def _find(master: Master, job: str) -> JobOut:
    state = master.state
    live = state.jobs.get(JobId(job))
    if live is not None:
        return views.live_job(live, state.round)
    record: JobRecord | None = state.records.get(JobId(job))
    if record is None:
        hint = did_you_mean(job, known_jobs(master.memory))
        raise NoSuchThingError(f"there is no job {job!r}{hint or '; see: eva queue --all'}")
    return views.ended_job(record, len(_task_names(master, record.job)) or None)


# The cluster


async def _instances(
    master: MasterOf, _user: User, *, ended: Annotated[bool, Query()] = False
) -> list[InstanceOut]:
    return views.instances(master.state, master.clock(), ended=ended)


async def _explain(master: MasterOf, _user: User, subject: str) -> Explanation:
    snapshot = master.memory.controller.scheduler.snapshot(master.clock())
    found = explain.explain(
        master.memory.controller, snapshot, Valuation(), master.history, subject
    )
    if found is None:
        state = master.state
        hint = did_you_mean(subject, (*known_jobs(master.memory), *state.tasks, *state.instances))
        see = hint or "; see: eva queue --all, eva instances"
        raise NoSuchThingError(f"there is no job, task or live instance {subject!r}{see}")
    return found


async def _decisions(
    master: MasterOf, _user: User, *, changes: Annotated[bool, Query()] = False
) -> list[DecisionOut]:
    kept = master.history.decisions
    return [views.decision(each) for each in kept if each.changed_anything or not changes]


async def _events(
    master: MasterOf, _user: User, *, after: Annotated[int, Query(ge=0)] = 0
) -> list[EventOut]:
    return [views.event(each) for each in master.history.events if each.number > after]


async def _tokens(master: MasterOf, _user: User) -> list[TokenOut]:
    return [TokenOut(name=name, made_ms=made_ms) for name, made_ms in master.tokens.names()]


async def _make_token(master: MasterOf, _user: User, name: str) -> TokenOut:
    token = await asyncio.to_thread(master.tokens.make, name)
    return TokenOut(name=name, made_ms=master.clock(), token=token)


async def _revoke_token(master: MasterOf, _user: User, name: str) -> dict[str, str]:
    await asyncio.to_thread(master.tokens.revoke, name)
    return {"revoked": name}


async def _shutdown(
    request: Request, master: MasterOf, _user: User, *, cancel: Annotated[bool, Query()] = False
) -> dict[str, Any]:
    master.closing = cancel
    request.app.state.on_shutdown(cancel)
    return {"closing": True, "live_jobs": len(master.state.jobs)}


async def _metrics(master: MasterOf, _user: User) -> PlainTextResponse:
    return PlainTextResponse(metrics.text(master), media_type=metrics.CONTENT_TYPE)


# Path, method, handler, the word that it answers with, and what it is for.
_ROUTES: tuple[tuple[str, str, Callable[..., Any], Any, str], ...] = (
    ("/health", "GET", _health, dict[str, Any], "Whether the master is there; wants no token."),
    ("/cluster", "GET", _cluster, Cluster, "The cluster in numbers."),
    ("/jobs", "POST", _submit, Submitted, "Accept a job. The answer means that it is on disk."),
    ("/jobs", "GET", _jobs, list[JobOut], "The live jobs; with `ended` the others too."),
    ("/preview", "POST", _preview, Preview, "Where a job would go now and what that would cost."),
    ("/workdirs", "POST", _workdir, WorkdirStored, "Keep a working folder: a plain tar."),
    ("/jobs/{job}", "GET", _job, JobOut, "One job, live or over."),
    ("/jobs/{job}/cancel", "POST", _cancel, JobOut, "Stop a job for good."),
    ("/jobs/{job}/logs", "GET", _logs, None,
     'Lines of JSON, `{"task": ..., "text": ...}`; of one task where `job` names one.'),
    ("/instances", "GET", _instances, list[InstanceOut],
     "What is paid for; with `ended` also what was."),
    ("/explain/{subject}", "GET", _explain, Explanation,
     "Why a job is where it is, or an instance worth its price."),
    ("/decisions", "GET", _decisions, list[DecisionOut],
     "The newest decisions, oldest first; `changes` leaves out those that changed nothing."),
    ("/events", "GET", _events, list[EventOut], "The newest events, from the number `after` on."),
    ("/tokens", "GET", _tokens, list[TokenOut], "Tokens by name."),
    ("/tokens/{name}", "POST", _make_token, TokenOut, "Make a token; it is shown this once."),
    ("/tokens/{name}", "DELETE", _revoke_token, dict[str, str], "Make a token worthless."),
    ("/shutdown", "POST", _shutdown, dict[str, Any],
     "End the master; with `cancel` after all jobs are cancelled and all instances gone."),
)  # fmt: skip
