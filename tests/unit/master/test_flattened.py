"""The state as rows: as large as it may be, and the same state when it comes back."""

from __future__ import annotations

import pickle

from eva.control.controller import Controller
from eva.control.events import (
    InstanceLost,
    InstanceReady,
    JobSubmitted,
    PlanComputed,
    RoundDue,
    TaskStarted,
)
from eva.control.invariants import check_everything
from eva.control.journal import digest
from eva.control.settings import ControllerSettings
from eva.inputs import catalogs
from eva.master.flattened import flatten
from eva.master.memory import restored_controller
from eva.model.ids import JobId, Workload
from eva.model.jobs import JobSpec, TaskSpec
from eva.model.plan import ClusterPlan, Decision, PlannedInstance
from eva.model.resources import Demand, Resources

CATALOG = catalogs.builtin("paper")
PAIRS = 600  # of tasks; pickle gives up on chains of about a hundred


def in_a_chain() -> Controller:
    """Gangs of two, each sharing one instance with the gang before it and one with the next."""
    controller = Controller(CATALOG)
    spec = TaskSpec(Workload("w"), Demand(Resources(0, 1_000, 1_024)))
    for index in range(PAIRS):
        controller.handle(JobSubmitted(JobId(f"j-{index}"), JobSpec("w", (spec, spec))), 0)
    controller.handle(RoundDue(), 1)
    tasks = list(controller.state.tasks)
    pairs = [(tasks[0],), *zip(tasks[1::2], tasks[2::2], strict=False), (tasks[-1],)]
    kind = CATALOG.get("c7i.large")
    assert kind is not None
    planned = tuple(PlannedInstance(kind, tuple(sorted(pair))) for pair in pairs)
    controller.handle(PlanComputed(1, ClusterPlan(planned, decision=Decision("full"))), 2)
    for instance in list(controller.state.instances):
        controller.handle(InstanceReady(instance), 3)
    for task in list(controller.state.tasks.values()):
        controller.handle(TaskStarted(task.id, task.epoch), 4)
    # One is gone that tasks still remember as where they ran.
    controller.handle(InstanceLost(next(iter(controller.state.instances)), None), 5)
    return controller


def test_a_large_cluster_comes_back_the_same() -> None:
    before = in_a_chain()
    check_everything(before.state)
    rows = pickle.loads(pickle.dumps(flatten(before.state)))
    after = restored_controller(CATALOG, ControllerSettings(), rows)
    assert digest(after.state) == digest(before.state)
    check_everything(after.state)


def test_what_comes_back_goes_on() -> None:
    before = in_a_chain()
    after = restored_controller(
        CATALOG, ControllerSettings(), pickle.loads(pickle.dumps(flatten(before.state)))
    )
    for now_ms, event in (
        (6, RoundDue()),
        (7, InstanceLost(list(before.state.instances)[5], None)),
    ):
        assert len(before.handle(event, now_ms)) == len(after.handle(event, now_ms))
        assert digest(after.state) == digest(before.state)
