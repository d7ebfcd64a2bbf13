"""The paper's ten workloads on its 21 types, drawn at random, as the quality figures have it."""

from __future__ import annotations

from random import Random

from eva.inputs.catalogs import builtin
from eva.model.catalog import Catalog
from eva.model.colocation import Entry, ThroughputTable
from eva.model.ids import JobId, TaskId
from eva.model.snapshot import ClusterSnapshot, TaskView
from eva.scheduling.situation import Situation, assess
from eva.scheduling.valuation import Valuation
from eva.traces.interference import MEASURED
from eva.traces.workloads import WORKLOADS

PAPER = builtin("paper")
PHYSICAL = builtin("paper-physical")
PLAIN = Valuation(interference=False)


def draw_tasks(count: int, seed: int) -> tuple[TaskView, ...]:
    random = Random(seed)
    return tuple(
        TaskView(TaskId(f"t{index:04d}"), JobId(f"t{index:04d}"), random.choice(WORKLOADS).spec)
        for index in range(count)
    )


def measured() -> ThroughputTable:
    name = {workload.kind.name: workload.spec.workload for workload in WORKLOADS}
    return ThroughputTable().record(
        Entry(name[kind], (name[beside],), throughput)
        for kind, row in MEASURED.matrix.items()
        for beside, throughput in row.items()
    )


def situation(
    tasks: tuple[TaskView, ...],
    catalog: Catalog = PAPER,
    table: ThroughputTable | None = None,
    valuation: Valuation = PLAIN,
) -> Situation:
    snapshot = ClusterSnapshot(0, catalog, tasks, table=table or ThroughputTable())
    return assess(snapshot, valuation)
