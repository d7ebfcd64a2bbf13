"""What a plan changes about the instances, each change with what it is worth: for people to read.

A plan names every instance that there should be, the unchanged ones too. Here is the difference,
with just as much of the snapshot as it takes to say why, so that decisions can be remembered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from eva.model.ids import TaskId
from eva.model.plan import ClusterPlan, PlannedInstance
from eva.model.snapshot import ClusterSnapshot, InstanceView
from eva.model.units import format_usd
from eva.scheduling.explanation import Explainer, Reason
from eva.scheduling.valuation import Valuation

_NAMED = 4  # more tasks than that are counted


@dataclass(frozen=True, slots=True)
class Changes:
    """`made` are instances of the plan that are new or get other tasks; `given_up` are present
    ones that it does not name. `snapshot` holds the jobs of these and nobody else.
    """

    given_up: tuple[PlannedInstance, ...]
    made: tuple[PlannedInstance, ...]
    snapshot: ClusterSnapshot

    def reasons(self) -> list[str]:
        """A line for each, those given up first."""
        explainer = Explainer(self.snapshot, Valuation())
        lines = [_why_given_up(reason) for reason in explainer.reasons(self.given_up)]
        return lines + [_why_made(reason) for reason in explainer.reasons(self.made)]


def changes(plan: ClusterPlan, snapshot: ClusterSnapshot) -> Changes:
    present = {view.id: frozenset(view.tasks) for view in snapshot.instances}
    kept = {planned.instance for planned in plan.instances}
    made = tuple(
        planned
        for planned in plan.instances
        if planned.instance is None
        or not present.get(planned.instance, frozenset()).issuperset(planned.tasks)
    )
    known = {view.id for view in snapshot.tasks}
    given_up = tuple(_as_planned(v, known) for v in snapshot.instances if v.id not in kept)
    return Changes(given_up, made, _about(snapshot, (*given_up, *made)))


def _as_planned(view: InstanceView, known: set[TaskId]) -> PlannedInstance:
    return PlannedInstance(view.type, tuple(t for t in view.tasks if t in known), view.id)


def _about(snapshot: ClusterSnapshot, instances: Iterable[PlannedInstance]) -> ClusterSnapshot:
    """With siblings too: what a task of a gang is worth depends on them."""
    tasks = {task for planned in instances for task in planned.tasks}
    jobs = {view.job for view in snapshot.tasks if view.id in tasks}
    concerned = tuple(view for view in snapshot.tasks if view.job in jobs)
    return replace(snapshot, tasks=concerned, instances=())


def _why_given_up(reason: Reason) -> str:
    planned = reason.planned
    what = f"{planned.instance}, a {planned.type.name} at {_usd(planned.type.hourly_micros)}/h"
    if not planned.tasks:
        return f"{what}, is given up: it has no task left"
    worth = _worth(reason)
    who = f"{_who(planned)} {'is' if len(planned.tasks) == 1 else 'are'}"
    if worth < planned.type.hourly_micros:
        return f"{what}, is given up: {who} worth only {_usd(worth)}/h there"
    return f"{what}, is given up: {who} worth {_usd(worth)}/h there, and cheaper elsewhere"


def _why_made(reason: Reason) -> str:
    planned = reason.planned
    price = f"{planned.type.name} at {_usd(planned.type.hourly_micros)}/h"
    if planned.instance is None:
        what = f"a new {price} for {_who(planned)}"
    else:
        what = f"{planned.instance}, a {price}, for {_who(planned)}"
    if len(planned.tasks) == 1 and planned.type.name == reason.shares[0].alone_on.name:
        return f"{what}: the cheapest type that holds it"
    worth, apart = _worth(reason), reason.apart_micros
    slowed = "" if worth == apart else f", {_usd(worth)}/h at the speeds expected together"
    return f"{what}: apart {_usd(apart)}/h{slowed}"


def _worth(reason: Reason) -> int:
    return sum(share.worth_micros * len(share.tasks) for share in reason.shares)


def _who(planned: PlannedInstance) -> str:
    if len(planned.tasks) <= _NAMED:
        return ", ".join(planned.tasks)
    return f"{len(planned.tasks)} tasks"


def _usd(micros: int) -> str:
    return format_usd(micros, 4)
