"""M: only what moves and what is launched costs, and a job stands still as a whole."""

from __future__ import annotations

from eva.model.catalog import InstanceDelays, InstanceType
from eva.model.ids import InstanceId, JobId, TaskId, Workload
from eva.model.jobs import TaskDelays, TaskSpec
from eva.model.plan import PlannedInstance
from eva.model.resources import Demand, Resources
from eva.model.snapshot import TaskView
from eva.scheduling.migration_cost import migration_cost

HOUR_MS = 3_600_000
KIND = InstanceType(
    "big",
    "f",
    Resources(4, 16_000, 65_536),
    12_000_000,
    InstanceDelays(0, HOUR_MS // 4, HOUR_MS // 4),
)
HERE = InstanceId("here")


def _task(name: str, job: str, at: InstanceId | None, still_ms: int) -> TaskView:
    delays = TaskDelays(still_ms // 2, still_ms - still_ms // 2)
    spec = TaskSpec(Workload("w"), Demand.of(1, 1, 1), delays=delays)
    return TaskView(TaskId(name), JobId(job), spec, at)


def test_staying_costs_nothing() -> None:
    task = _task("a", "a", HERE, HOUR_MS)
    cost = migration_cost(
        [PlannedInstance(KIND, (task.id,), HERE)], {task.id: task}, {JobId("a"): 3_000_000}
    )
    assert (cost.micros, cost.moved, cost.launched) == (0, (), 0)


def test_a_launch_costs_its_setup_and_starting_a_waiting_task_is_free() -> None:
    task = _task("a", "a", None, HOUR_MS)
    cost = migration_cost(
        [PlannedInstance(KIND, (task.id,))], {task.id: task}, {JobId("a"): 3_000_000}
    )
    assert (cost.micros, cost.moved, cost.launched) == (6_000_000, (), 1)


def test_a_job_stands_still_once_for_as_long_as_its_slowest_task() -> None:
    quick, slow = _task("a", "j", HERE, HOUR_MS // 4), _task("b", "j", HERE, HOUR_MS // 2)
    there = PlannedInstance(KIND, (quick.id, slow.id), InstanceId("there"))
    cost = migration_cost([there], {quick.id: quick, slow.id: slow}, {JobId("j"): 6_000_000})
    assert (cost.micros, cost.moved, cost.launched) == (3_000_000, ("a", "b"), 0)
