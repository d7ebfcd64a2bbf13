"""From the state to the words of the API. Reading only; called between two events, never within."""

from __future__ import annotations

from eva.control.ledger import Account
from eva.control.state import Instance, Job, JobRecord, State, Task
from eva.master import waiting
from eva.master.history import Adopted, Happening
from eva.master.words import (
    CandidateOut,
    DecisionOut,
    EventOut,
    InstanceOut,
    JobOut,
    TaskOut,
)
from eva.model.plan import Candidate, Decision
from eva.model.units import MS_PER_HOUR, format_duration, format_usd


def live_job(job: Job, current_round: int) -> JobOut:
    first = job.tasks[0].spec
    demand = first.demand.default
    tasks = [_task(task, current_round) for task in job.tasks]
    return JobOut(
        id=job.id,
        name=job.spec.name,
        state=job.state.value,
        submitted_ms=job.submitted_ms,
        first_start_ms=job.first_start_ms,
        ended_ms=None,
        failures=job.failures,
        migrations=job.migrations,
        reason=job.reason or next((task.reason for task in tasks if task.reason), ""),
        workload=first.workload,
        demand=None if demand is None else str(demand),
        nodes=len(job.tasks),
        priority=job.spec.priority,
        tasks=tasks,
    )


def ended_job(record: JobRecord, nodes: int | None = None) -> JobOut:
    return JobOut(
        id=record.job,
        name=record.name,
        state=record.state.value,
        submitted_ms=record.submitted_ms,
        first_start_ms=record.first_start_ms,
        ended_ms=record.ended_ms,
        failures=record.failures,
        migrations=record.migrations,
        reason=record.reason,
        nodes=nodes,
    )


def _task(task: Task, current_round: int) -> TaskOut:
    return TaskOut(
        id=task.id,
        state=task.state.value,
        epoch=task.epoch,
        instance=None if task.instance is None else task.instance.id,
        bound_for=None if task.home is None else task.home.id,
        iterations_per_s=task.iterations_per_s,
        reason=waiting.why(task, current_round),
    )


def instances(state: State, now_ms: int, *, ended: bool) -> list[InstanceOut]:
    """Live instances, and the closed accounts before them if asked for."""
    accounts = list(state.ledger) if ended else list(state.ledger.open.values())
    return [
        _instance(account, state.instances.get(account.instance), now_ms) for account in accounts
    ]


def _instance(account: Account, live: Instance | None, now_ms: int) -> InstanceOut:
    return InstanceOut(
        id=account.instance,
        type=account.type,
        state="gone" if live is None else live.state.value,
        hourly_micros=account.hourly_micros,
        launched_ms=account.launched_ms,
        acquired_ms=account.acquired_ms,
        ready_ms=None if live is None else live.ready_ms,
        ended_ms=account.ended_ms,
        ended_by=account.ended_by,
        uptime_ms=account.uptime_ms(now_ms),
        cost_micros=account.cost_micros(now_ms),
        capacity="" if live is None else str(live.type.capacity),
        worth_micros=0 if live is None else live.value_micros,
        tasks=[] if live is None else sorted({*live.copies, *live.bound}),
        risk_micros=0 if live is None else live.type.risk_micros,
    )


def event(happening: Happening) -> EventOut:
    return EventOut(
        number=happening.number,
        time_ms=happening.time_ms,
        kind=happening.kind,
        text=happening.text,
        job=happening.job,
        instance=happening.instance,
    )


def decision(adopted: Adopted) -> DecisionOut:
    made = adopted.plan.decision
    return DecisionOut(
        round=adopted.round,
        time_ms=adopted.time_ms,
        chosen=made.chosen,
        horizon_hours=finite(made.horizon_hours),
        reason=made.reason,
        candidates=[_candidate(each, made) for each in made.candidates],
        launched=[list(pair) for pair in adopted.launched],
        terminated=list(adopted.terminated),
        moved=list(adopted.moved),
        started=list(adopted.started),
        unplaceable=[f"{each.task}: {each.reason}" for each in adopted.plan.unplaceable],
        hourly_micros_before=adopted.hourly_micros_before,
        hourly_micros_after=adopted.plan.billed_micros,
        text=decision_text(made),
    )


def finite(hours: float | None) -> float | None:
    """JSON knows no infinity; an infinite horizon is told by the text."""
    return None if hours is None or hours == float("inf") else hours


def _candidate(candidate: Candidate, made: Decision) -> CandidateOut:
    hours = finite(made.horizon_hours)
    net = None
    if hours is not None:
        net = round(candidate.saving_micros * hours) - candidate.migration_micros
    return CandidateOut(
        name=candidate.name,
        hourly_micros=candidate.hourly_micros,
        saving_micros=candidate.saving_micros,
        migration_micros=candidate.migration_micros,
        migrated_tasks=candidate.migrated_tasks,
        launched_instances=candidate.launched_instances,
        net_micros=net,
    )


def decision_text(made: Decision) -> str:
    """Why this configuration and not the other: the paper's S x D - M, in dollars."""
    if made.horizon_hours is None or not made.candidates:
        return made.reason or f"{made.chosen}: the policy weighs no alternatives"
    hours = finite(made.horizon_hours)
    alike: dict[tuple[int, int], list[str]] = {}  # candidates that come to the same
    for candidate in made.candidates:
        key = (candidate.saving_micros, candidate.migration_micros)
        alike.setdefault(key, []).append(candidate.name)
    alike = dict(sorted(alike.items(), key=lambda item: made.chosen not in item[1]))
    sums = [f"{' = '.join(names)}: {_sum_text(*key, hours)}" for key, names in alike.items()]
    if len(sums) == 1:
        others = "all come to the same" if len(made.candidates) > 1 else "there was no other plan"
        return f"{sums[0]}; rejected: nothing, {others}"
    return f"{sums[0]}; rejected: {'; '.join(sums[1:])}"


def _sum_text(saving_micros: int, migration_micros: int, hours: float | None) -> str:
    """`S` is told against every task on an instance of its own, which is what it is measured by."""
    saves, costs = format_usd(saving_micros, 4), format_usd(migration_micros, 4)
    if hours is None:
        return f"{saves}/h below each task on its own, for good, less {costs} to get there"
    net = format_usd(round(saving_micros * hours) - migration_micros, 4)
    lasts = format_duration(round(hours * MS_PER_HOUR))
    return f"{saves}/h below each task on its own, for {lasts}, less {costs} to get there = {net}"
