"""Why things are where they are: the present configuration taken apart by the policy's own sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eva.control.controller import Controller
from eva.control.offer import Offer
from eva.control.state import Job, JobRecord, State
from eva.master import views
from eva.master import waiting as waits
from eva.master.history import Adopted, History
from eva.master.words import Explanation, Preview, PreviewInstance, ReasonOut, ShareOut
from eva.model.catalog import Catalog, InstanceType
from eva.model.ids import JobId, TaskId, task_id
from eva.model.jobs import JobSpec
from eva.model.plan import ClusterPlan, PlannedInstance
from eva.model.snapshot import ClusterSnapshot, TaskView
from eva.model.units import format_duration, format_usd
from eva.scheduling.explanation import Explainer, Reason
from eva.scheduling.valuation import Valuation


def explain(
    controller: Controller,
    snapshot: ClusterSnapshot,
    valuation: Valuation,
    history: History,
    subject: str,
) -> Explanation | None:
    """About a job, a task or an instance; None if there is no such thing."""
    state, now_ms = controller.state, snapshot.now_ms
    tasks = _tasks_of(state, subject)
    job = state.jobs.get(JobId(subject))
    if tasks is None and subject not in state.instances and subject not in state.records:
        return None
    explainer = Explainer(snapshot, valuation)
    known = {view.id for view in snapshot.tasks}
    present = [
        PlannedInstance(view.type, tuple(t for t in view.tasks if t in known), view.id)
        for view in snapshot.instances
        if _concerns(view.id, view.tasks, subject, tasks)
    ]
    reasons = [
        _reason(reason, _risk(controller.offer, reason.planned.type, now_ms))
        for reason in explainer.reasons(present)
    ]
    record = state.records.get(JobId(subject))
    decision = None if record else _last_about(history.decisions, subject, tasks)
    waiting = [] if job is None else _waiting(job, state.round)
    return Explanation(
        subject=subject,
        text="\n".join(_epitaph(record) + _text(reasons, waiting, decision)),
        instances=reasons,
        decision=None if decision is None else views.decision(decision),
        waiting=waiting,
    )


def snapshot_with(
    snapshot: ClusterSnapshot, offered: Catalog, job: JobId, spec: JobSpec
) -> ClusterSnapshot:
    """The same cluster, with one more job waiting, and what is offered then."""
    views_ = tuple(TaskView(task_id(job, i), job, task) for i, task in enumerate(spec.tasks))
    return ClusterSnapshot(
        snapshot.now_ms,
        offered,
        snapshot.tasks + views_,
        snapshot.instances,
        snapshot.table,
        snapshot.statistics,
    )


def preview(
    job: JobId, before: ClusterPlan, after: ClusterPlan, snapshot: ClusterSnapshot
) -> Preview:
    """The two plans compared: with the job and without it."""
    explainer = Explainer(snapshot, Valuation())
    mine = {view.id for view in snapshot.tasks if view.job == job}
    instances = []
    for planned in after.instances:
        ours = [task for task in planned.tasks if task in mine]
        if ours:
            instances.append(
                PreviewInstance(
                    type=planned.type.name,
                    hourly_micros=planned.type.billed_micros,
                    risk_micros=planned.type.risk_micros,
                    instance=planned.instance,
                    tasks=len(ours),
                    beside=[task for task in planned.tasks if task not in mine],
                )
            )
    alone = sum(
        group.price.type.billed_micros
        for group in explainer.classes
        for task in group.tasks
        if task in mine
    )
    return Preview(
        instances=instances,
        hourly_micros_before=before.billed_micros,
        hourly_micros_after=after.billed_micros,
        alone_hourly_micros=alone,
        unplaceable=[each.reason for each in after.unplaceable if each.task in mine],
    )


def _tasks_of(state: State, subject: str) -> frozenset[TaskId] | None:
    job = state.jobs.get(JobId(subject))
    if job is not None:
        return frozenset(task.id for task in job.tasks)
    return frozenset({TaskId(subject)}) if subject in state.tasks else None


def _concerns(
    instance: str, on_it: Sequence[TaskId], subject: str, tasks: frozenset[TaskId] | None
) -> bool:
    return instance == subject or (tasks is not None and not tasks.isdisjoint(on_it))


def _risk(offer: Offer, kind: InstanceType, now_ms: int) -> str:
    """What the risk is made of; nothing to say on demand."""
    expected = offer.expected(kind, now_ms)
    if expected is None:
        return ""
    every = format_duration(expected.rate.in_ms // max(1, expected.rate.interruptions))
    return (
        f"{kind.name} may be taken back, about once in {every} of one instance as far as is known; "
        f"that costs {format_duration(expected.standstill_ms)} at "
        f"{format_usd(expected.machine.hourly_micros, 4)}/h, the price on demand"
    )


def _reason(reason: Reason, risk_text: str) -> ReasonOut:
    planned = reason.planned
    return ReasonOut(
        instance=str(planned.instance),
        type=planned.type.name,
        hourly_micros=planned.type.billed_micros,
        risk_micros=planned.type.risk_micros,
        risk_text=risk_text,
        worth_micros=sum(share.worth_micros * len(share.tasks) for share in reason.shares),
        apart_micros=reason.apart_micros,
        shares=[
            ShareOut(
                workload=share.workload,
                tasks=list(share.tasks),
                alone_on=share.alone_on.name,
                alone_micros=share.alone_micros,
                throughput=share.throughput,
                worth_micros=share.worth_micros,
            )
            for share in reason.shares
        ],
    )


def _last_about(
    decisions: Iterable[Adopted], subject: str, tasks: frozenset[TaskId] | None
) -> Adopted | None:
    """The newest decision that did something about the subject, else the newest of all."""
    newest = None
    for adopted in reversed(list(decisions)):
        newest = newest or adopted
        touched = {*adopted.moved, *adopted.started, *adopted.terminated}
        touched |= {name for name, _ in adopted.launched}
        planned = tasks is not None and any(
            not tasks.isdisjoint(each.tasks) and adopted.launched and each.instance is None
            for each in adopted.plan.instances
        )
        if subject in touched or planned or (tasks and not tasks.isdisjoint(touched)):
            return adopted
    return newest


def _waiting(job: Job, current_round: int) -> list[str]:
    reasons = ((task.id, waits.why(task, current_round)) for task in job.tasks)
    return [f"{task}: {reason}" for task, reason in reasons if reason]


def _epitaph(record: JobRecord | None) -> list[str]:
    """Of a job that is over nothing is left to take apart."""
    if record is None:
        return []
    why = "" if record.reason in {"", record.state.value} else f": {record.reason}"
    return [f"{record.job} is over, it is {record.state.value}{why}"]


def _text(reasons: list[ReasonOut], waiting: list[str], decision: Adopted | None) -> list[str]:
    lines = []
    for each in reasons:
        price_micros = each.hourly_micros + each.risk_micros
        verdict = "worth" if each.worth_micros >= price_micros else "not worth"
        risk = (
            f" and {format_usd(each.risk_micros, 4)}/h for the risk of interruption"
            if each.risk_text
            else ""
        )
        lines.append(
            f"{each.instance}, a {each.type} at {format_usd(each.hourly_micros)}/h{risk}, is "
            f"{verdict} its price: its tasks are worth {format_usd(each.worth_micros)}/h there and "
            f"would cost {format_usd(each.apart_micros)}/h apart"
        )
        lines += [
            f"  {', '.join(share.tasks)}: reservation price {format_usd(share.alone_micros)}/h "
            f"({share.alone_on} alone), expected throughput {share.throughput:.2f}, "
            f"worth {format_usd(share.worth_micros)}/h each"
            for share in each.shares
        ]
        lines += [f"  {each.risk_text}"] * bool(each.risk_text)
    lines += waiting
    if decision is not None:
        before, after = decision.hourly_micros_before, decision.plan.billed_micros
        lines.append(
            f"round {decision.round} took all instances together from {format_usd(before, 4)}/h to "
            f"{format_usd(after, 4)}/h"
        )
        lines.append(f"chosen: {views.decision_text(decision.plan.decision)}")
    return lines
