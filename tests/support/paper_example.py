"""The worked example of the paper (its Table 3): four instance types and four tasks."""

from __future__ import annotations

from eva.model.catalog import Catalog, InstanceType
from eva.model.ids import JobId, TaskId, Workload
from eva.model.jobs import TaskSpec
from eva.model.resources import Demand, Resources
from eva.model.snapshot import ClusterSnapshot, TaskView
from eva.model.units import usd_to_micros


def _kind(name: str, gpus: int, cpus: int, memory_gb: int, usd: str) -> InstanceType:
    capacity = Resources(gpus, cpus * 1000, memory_gb * 1024)
    return InstanceType(name, "any", capacity, usd_to_micros(usd))


CATALOG = Catalog(
    "worked-example",
    (
        _kind("it1", 4, 16, 244, "12"),
        _kind("it2", 1, 4, 61, "3"),
        _kind("it3", 0, 8, 32, "0.8"),
        _kind("it4", 0, 4, 16, "0.4"),
    ),
)

DEMANDS = {
    "t1": Demand.of(2, 8, 24),
    "t2": Demand.of(1, 4, 10),
    "t3": Demand.of(0, 6, 20),
    "t4": Demand.of(0, 4, 12),
}


def task(name: str, job: str | None = None) -> TaskView:
    spec = TaskSpec(Workload(name), DEMANDS[name])
    return TaskView(TaskId(name), JobId(job or name), spec)


TASKS = tuple(task(name) for name in DEMANDS)


def snapshot() -> ClusterSnapshot:
    return ClusterSnapshot(now_ms=0, catalog=CATALOG, tasks=TASKS)
