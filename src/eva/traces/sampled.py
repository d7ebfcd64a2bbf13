"""Traces sampled from the paper's ten workloads: its physical experiments and micro-benchmarks.

Here tasks keep the demands of the workload table, which differ by instance family, and ResNet18
jobs have two or four tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from eva.model.errors import InputError
from eva.model.units import MS_PER_HOUR
from eva.traces.assembly import JobShape, assembled
from eva.traces.drawing import MEAN_INTERARRIVAL_MS
from eva.traces.rng import Source, generator
from eva.traces.timing import log_uniform_durations, poisson_arrivals, uniform_durations
from eva.traces.trace import Trace
from eva.traces.workloads import WORKLOADS, numbered


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many jobs, for how long, how often; `tasks_per_job` overrides the workload table.

    Of the multi-task benchmark the paper says that jobs take 0.5 to 16 hours, and that alone they
    complete in 4.44 on average: that is uniform in the logarithm (4.47), not in the hours (8.25).
    """

    jobs: int
    shortest_ms: int = MS_PER_HOUR // 2
    longest_ms: int = 3 * MS_PER_HOUR
    mean_interarrival_ms: int = MEAN_INTERARRIVAL_MS
    tasks_per_job: int | None = None
    log_uniform: bool = False

    def of(self, jobs: int) -> Sampling:
        return replace(self, jobs=jobs)


SMALL_PHYSICAL = Sampling(32)
LARGE_PHYSICAL = Sampling(120)
MULTI_TASK_BENCHMARK = Sampling(100, longest_ms=16 * MS_PER_HOUR, tasks_per_job=4, log_uniform=True)


def tasks_at_once(count: int) -> Sampling:
    """Single tasks that are all there from the start: the provisioning micro-benchmark."""
    return Sampling(count, mean_interarrival_ms=0, tasks_per_job=1)


def sampled_trace(name: str, sampling: Sampling, seed: int) -> Trace:
    if sampling.jobs < 1:
        raise InputError.single("number of jobs", f"{sampling.jobs} is too few; a trace needs one")
    draws = generator(seed, Source.WORKLOADS).integers(len(WORKLOADS), size=sampling.jobs)
    durations = log_uniform_durations if sampling.log_uniform else uniform_durations
    shapes = [_shape(int(index), sampling.tasks_per_job) for index in draws]
    return assembled(
        name,
        shapes,
        poisson_arrivals(sampling.jobs, sampling.mean_interarrival_ms, seed),
        durations(sampling.jobs, sampling.shortest_ms, sampling.longest_ms, seed),
    )


def _shape(index: int, tasks_per_job: int | None) -> JobShape:
    workload = WORKLOADS[index]
    return JobShape(
        workload.kind,
        numbered(workload.kind.name, 0),
        workload.demand,
        workload.throughput_per_s,
        workload.tasks if tasks_per_job is None else tasks_per_job,
    )
