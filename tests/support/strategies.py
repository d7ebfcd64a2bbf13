"""Hypothesis strategies for clusters: small on purpose, with many ties and shared specs."""

from __future__ import annotations

from hypothesis import strategies as st

from eva.model.catalog import Catalog, InstanceType
from eva.model.colocation import Entry, ThroughputTable, neighbours
from eva.model.ids import JobId, TaskId, Workload
from eva.model.jobs import TaskSpec
from eva.model.resources import Demand, Resources
from eva.model.snapshot import TaskView

WORKLOADS = tuple(Workload(name) for name in "abcd")
FAMILIES = ("g", "c")

throughputs = st.sampled_from([0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 1.0])


@st.composite
def resources(draw: st.DrawFn, gpus: int, cpus: int, memory_gb: int) -> Resources:
    return Resources(
        draw(st.integers(0, gpus)),
        1000 * draw(st.integers(1, cpus)),
        1024 * draw(st.integers(1, memory_gb)),
    )


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    count = draw(st.integers(1, 5))
    types = []
    for index in range(count):
        capacity = draw(resources(gpus=8, cpus=32, memory_gb=64))
        family = draw(st.sampled_from(FAMILIES))
        price = 250_000 * draw(st.integers(1, 40))
        types.append(InstanceType(f"type{index}", family, capacity, price))
    return Catalog("drawn", tuple(types))


@st.composite
def specs(draw: st.DrawFn) -> TaskSpec:
    default = draw(resources(gpus=4, cpus=16, memory_gb=32))
    special = draw(st.none() | resources(gpus=4, cpus=16, memory_gb=32))
    per_family = ((draw(st.sampled_from(FAMILIES)), special),) if special else ()
    return TaskSpec(draw(st.sampled_from(WORKLOADS)), Demand(default, per_family))


@st.composite
def task_lists(
    draw: st.DrawFn, *, multi_task: bool = False, most: int = 14
) -> tuple[TaskView, ...]:
    """Tasks drawn from a few specs, so that classes have several members."""
    kinds = draw(st.lists(specs(), min_size=1, max_size=5))
    jobs = draw(st.lists(st.sampled_from(kinds), min_size=0, max_size=most))
    tasks: list[TaskView] = []
    for number, spec in enumerate(jobs):
        size = draw(st.integers(1, 3)) if multi_task else 1
        job = JobId(f"job{number:02d}")
        tasks.extend(TaskView(TaskId(f"{job}.{i}"), job, spec) for i in range(size))
    return tuple(tasks[:most])


@st.composite
def tables(draw: st.DrawFn) -> ThroughputTable:
    groups = st.lists(st.sampled_from(WORKLOADS), min_size=1, max_size=3).map(neighbours)
    entries = st.builds(Entry, st.sampled_from(WORKLOADS), groups, throughputs)
    recorded = draw(st.lists(entries, max_size=10))
    default = draw(st.sampled_from([0.9, 0.95, 1.0]))
    return ThroughputTable(default).record(recorded)
