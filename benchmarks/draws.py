"""Seeded inputs: tasks drawn from the paper's ten workloads, and synthetic crowds of classes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from eva.model.catalog import Catalog
from eva.model.colocation import Entry, ThroughputTable
from eva.model.ids import JobId, TaskId, Workload
from eva.model.jobs import TaskSpec
from eva.model.resources import Demand, Resources
from eva.model.snapshot import TaskView
from eva.model.units import MIB_PER_GB, MILLIS_PER_CPU
from eva.scheduling.packing import Ints, Packer, full_stock
from eva.scheduling.reservation_price import price_book
from eva.scheduling.task_classes import classify
from eva.scheduling.valuation import Valuation
from eva.traces.interference import MEASURED
from eva.traces.workloads import WORKLOADS

PLAIN = Valuation(interference=False)


def ten_workloads(count: int, seed: int) -> list[TaskView]:
    """`count` single tasks, each of a workload drawn at random."""
    specs = [TaskSpec(Workload(w.name), w.demand) for w in WORKLOADS]
    chosen = np.random.default_rng(seed).integers(len(specs), size=count)
    return _tasks(specs[index] for index in chosen)


def with_interference(count: int, seed: int) -> list[TaskView]:
    """The same, named as the measured matrix names them."""
    specs = [w.spec for w in WORKLOADS]
    chosen = np.random.default_rng(seed).integers(len(specs), size=count)
    return _tasks(specs[index] for index in chosen)


def evenly(count: int, classes: int, seed: int) -> list[TaskView]:
    """`count` tasks spread over `classes` random demands that all differ."""
    draw = np.random.default_rng(seed)
    specs = []
    for index in range(classes):
        gpus = int(draw.choice([0, 0, 1, 1, 2, 4]))
        cpu = int(draw.integers(1_000, 8_000)) + gpus * 2 * MILLIS_PER_CPU
        memory = int(draw.integers(2 * MIB_PER_GB, 40 * MIB_PER_GB))
        demand = Demand(Resources(gpus, min(cpu, 32_000), memory))
        specs.append(TaskSpec(Workload(f"w{index}"), demand))
    return _tasks(specs[index % classes] for index in range(count))


def packer_for(
    tasks: Iterable[TaskView],
    catalog: Catalog,
    table: ThroughputTable | None = None,
    valuation: Valuation = PLAIN,
) -> tuple[Packer, Ints]:
    """Classes of `tasks` and their stock, as every packing takes them."""
    classes, unplaceable = classify(tasks, price_book(catalog), {})
    if unplaceable:
        raise ValueError(f"{unplaceable[0].task} fits nothing in {catalog.name}: draw others")
    return Packer(classes, table or ThroughputTable(), valuation), full_stock(classes)


def measured_table() -> ThroughputTable:
    """Everything of the measured matrix, as if every pair had been observed once."""
    name = {workload.kind.name: workload.spec.workload for workload in WORKLOADS}
    return ThroughputTable().record(
        Entry(name[kind], (name[beside],), throughput)
        for kind, row in MEASURED.matrix.items()
        for beside, throughput in row.items()
    )


def _tasks(specs: Iterable[TaskSpec]) -> list[TaskView]:
    return [
        TaskView(TaskId(f"t{index:07d}.0"), JobId(f"t{index:07d}"), spec)
        for index, spec in enumerate(specs)
    ]
