"""Changes of composition that the paper's sweeps make to a trace.

Every change keeps what it does not speak of: a sweep over the share of multi-GPU jobs has the same
arrivals and durations at every point. As a share grows, the jobs changed for a smaller share stay
changed, so that points of a sweep differ by as little as they can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from eva.model.catalog import Catalog
from eva.model.errors import InputError
from eva.model.jobs import JobSpec, TaskSpec
from eva.model.resources import Demand, Resources
from eva.traces.assembly import WorkloadNames, make_job, shape_of
from eva.traces.rng import Source, generator
from eva.traces.timing import gavel_durations, poisson_arrivals
from eva.traces.trace import SpecPool, Trace, TraceJob, gpus_of
from eva.traces.workloads import KINDS, kind_of

# Of ten multi-GPU jobs, five have 2 GPUs, four have 4 and one has 8.
_MULTI_GPU_PATTERN = (2, 4, 2, 4, 2, 4, 2, 4, 2, 8)
_MULTI_TASK_PATTERN = (2, 4)


def with_gavel_durations(trace: Trace, seed: int) -> Trace:
    durations_ms = gavel_durations(len(trace), seed)
    return trace.with_jobs(
        job.lasting(duration_ms) for job, duration_ms in zip(trace.jobs, durations_ms, strict=True)
    )


def with_poisson_arrivals(trace: Trace, mean_ms: int, seed: int) -> Trace:
    arrivals_ms = poisson_arrivals(len(trace), mean_ms, seed)
    return trace.with_jobs(
        replace(job, arrival_ms=arrival_ms)
        for job, arrival_ms in zip(trace.jobs, arrivals_ms, strict=True)
    )


def with_multi_task(trace: Trace, share: float, seed: int) -> Trace:
    """`share` of the jobs get their task two or four times, in equal parts."""
    single = [index for index, job in enumerate(trace.jobs) if len(job.phases) == 1]
    chosen = _chosen("multi-task", share, len(trace), single, generator(seed, Source.MULTI_TASK))
    jobs, pool = list(trace.jobs), SpecPool()
    for index, tasks in _dealt(chosen, _MULTI_TASK_PATTERN):
        job = jobs[index]
        spec = pool.job(job.spec.name, job.spec.tasks * tasks)
        jobs[index] = replace(job, spec=spec, phases=job.phases * tasks)
    return trace.with_jobs(jobs)


def with_multi_gpu(trace: Trace, share: float, catalog: Catalog, seed: int) -> Trace:
    """`share` of the jobs have 2, 4 or 8 GPUs (5:4:1), the other GPU jobs one.

    Jobs without GPU stay as they are. A job whose number of GPUs changes takes the demand of a
    job with that number, drawn from the trace; where the trace has none, its own demand is scaled
    with the GPUs, up to what the largest instance type with so many GPUs holds.
    """
    rng = generator(seed, Source.MULTI_GPU)
    with_gpus = [index for index, job in enumerate(trace.jobs) if _gpus(job) > 0]
    chosen = _chosen("multi-GPU", share, len(trace), with_gpus, rng)
    target = dict.fromkeys(with_gpus, 1) | dict(_dealt(chosen, _MULTI_GPU_PATTERN))
    resize = _Resize(catalog, _demands_by_gpus(trace), rng)
    names = WorkloadNames.continuing(trace, generator(seed, Source.WORKLOADS))
    pool = SpecPool()
    jobs = list(trace.jobs)
    for index in with_gpus:
        gpus, job = target[index], jobs[index]
        if gpus != _gpus(job):
            demand = resize.to(gpus, job.spec.tasks[0].demand)
            jobs[index] = _with_demand(job, demand, names, pool)
    return trace.with_jobs(jobs)


@dataclass(frozen=True, slots=True)
class _Resize:
    catalog: Catalog
    by_gpus: dict[int, list[Demand]]
    rng: np.random.Generator

    def to(self, gpus: int, own: Demand) -> Demand:
        pick = float(self.rng.random())  # drawn in every case: streams stay aligned
        if present := self.by_gpus.get(gpus):
            return present[int(pick * len(present))]
        return _scaled(own, gpus, self.catalog)


def _scaled(demand: Demand, gpus: int, catalog: Catalog) -> Demand:
    hosts = [kind.capacity for kind in catalog if kind.capacity.gpus >= gpus]
    if not hosts:
        raise InputError.single(
            f"multi-GPU jobs of {gpus} GPUs",
            f"no instance type of catalog {catalog.name!r} has so many; use another catalog",
        )
    room, before = max(hosts), gpus_of(demand)
    amount = demand.default or demand.per_family[0][1]
    return Demand(
        Resources(
            gpus,
            min(amount.cpu_millis * gpus // before, room.cpu_millis),
            min(amount.memory_mib * gpus // before, room.memory_mib),
        )
    )


def allowing_spot(trace: Trace) -> Trace:
    """Every task may run on spot instances; equal specs stay one object."""
    tasks: dict[TaskSpec, TaskSpec] = {}
    jobs: dict[JobSpec, JobSpec] = {}

    def changed(spec: JobSpec) -> JobSpec:
        for task in spec.tasks:
            if task not in tasks:
                tasks[task] = replace(task, demand=replace(task.demand, spot=True))
        return replace(spec, tasks=tuple(tasks[task] for task in spec.tasks))

    for job in trace.jobs:
        if job.spec not in jobs:
            jobs[job.spec] = changed(job.spec)
    return trace.with_jobs(replace(job, spec=jobs[job.spec]) for job in trace.jobs)


def _with_demand(job: TraceJob, demand: Demand, names: WorkloadNames, pool: SpecPool) -> TraceJob:
    shape = shape_of(names.of(demand), demand, len(job.phases))
    return make_job(pool, job.id, shape, job.arrival_ms, job.duration_ms)


def _demands_by_gpus(trace: Trace) -> dict[int, list[Demand]]:
    found: defaultdict[int, list[Demand]] = defaultdict(list)
    for job in trace.jobs:
        if kind_of(job.spec.tasks[0].workload) in KINDS:
            found[_gpus(job)].append(job.spec.tasks[0].demand)
    return dict(found)


def _gpus(job: TraceJob) -> int:
    return gpus_of(job.spec.tasks[0].demand)


def _chosen(
    what: str, share: float, jobs: int, eligible: Sequence[int], rng: np.random.Generator
) -> list[int]:
    """The first so many of a random order of the eligible jobs."""
    wanted = round(share * jobs) if 0 <= share <= 1 else jobs + 1
    if wanted > len(eligible):
        raise InputError.single(
            f"share of {what} jobs",
            f"{share:g} of {jobs:,} jobs, but {len(eligible):,} could become {what}; "
            f"give a share from 0 to {len(eligible) / max(1, jobs):.3g}",
        )
    return [eligible[int(index)] for index in rng.permutation(len(eligible))[:wanted]]


def _dealt(chosen: Sequence[int], pattern: Sequence[int]) -> Iterable[tuple[int, int]]:
    return ((index, pattern[place % len(pattern)]) for place, index in enumerate(chosen))
