"""What a trace is made of, in the terms of the paper's two trace tables.

Published figures stand beside ours: Chang and Venkataraman, EuroSys 2025, the tables "Alibaba
trace job composition by GPU demands" and "Job duration in simulation experiments". The published
mix counts the pods that failed too (see `alibaba.py`), so the mix of the very trace that the
paper simulates differs from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eva.model.units import MS_PER_HOUR
from eva.traces.synthetic import GPU_MIX
from eva.traces.trace import Trace, gpus_of
from eva.traces.workloads import kind_of

PUBLISHED_GPU_MIX = GPU_MIX


@dataclass(frozen=True, slots=True)
class DurationSummary:
    """Hours."""

    mean: float
    median: float
    p80: float
    p95: float

    def as_json(self) -> dict[str, float]:
        return {"mean": self.mean, "median": self.median, "p80": self.p80, "p95": self.p95}


PUBLISHED_DURATIONS: Mapping[str, DurationSummary] = {
    "alibaba": DurationSummary(9.1, 0.2, 1.0, 5.2),
    "gavel": DurationSummary(16.7, 4.5, 16.4, 96.6),
}


@dataclass(frozen=True, slots=True)
class TraceStatistics:
    """`gpu_mix` is the share of jobs by the GPUs of one of their tasks."""

    name: str
    jobs: int
    tasks: int
    multi_task_jobs: int
    gpu_mix: Mapping[int, float]
    duration_hours: DurationSummary
    span_hours: float
    jobs_per_hour: float | None
    workloads: Mapping[str, int]
    distinct_workloads: int

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "jobs": self.jobs,
            "tasks": self.tasks,
            "multi_task_jobs": self.multi_task_jobs,
            "gpu_mix": {str(gpus): share for gpus, share in self.gpu_mix.items()},
            "duration_hours": self.duration_hours.as_json(),
            "span_hours": self.span_hours,
            "jobs_per_hour": self.jobs_per_hour,
            "workloads": dict(self.workloads),
            "distinct_workloads": self.distinct_workloads,
            "published": {
                "gpu_mix": {str(gpus): share for gpus, share in PUBLISHED_GPU_MIX.items()},
                "duration_hours": {
                    name: summary.as_json() for name, summary in PUBLISHED_DURATIONS.items()
                },
            },
        }


def statistics_of(trace: Trace) -> TraceStatistics:
    """Statistics of a trace that has at least one job."""
    span_ms = trace.jobs[-1].arrival_ms - trace.jobs[0].arrival_ms
    specs = [task for job in trace.jobs for task in job.spec.tasks]
    gpus = Counter(max(gpus_of(task.demand) for task in job.spec.tasks) for job in trace.jobs)
    return TraceStatistics(
        name=trace.name,
        jobs=len(trace),
        tasks=trace.tasks,
        multi_task_jobs=sum(len(job.phases) > 1 for job in trace.jobs),
        gpu_mix={count: gpus[count] / len(trace) for count in sorted(gpus)},
        duration_hours=_durations(sorted(job.duration_ms for job in trace.jobs)),
        span_hours=span_ms / MS_PER_HOUR,
        jobs_per_hour=(len(trace) - 1) * MS_PER_HOUR / span_ms if span_ms else None,
        workloads=dict(sorted(Counter(kind_of(task.workload) for task in specs).items())),
        distinct_workloads=len({task.workload for task in specs}),
    )


def _durations(ordered_ms: Sequence[int]) -> DurationSummary:
    def quantile(share: float) -> float:
        """Linear between the two nearest jobs."""
        place = share * (len(ordered_ms) - 1)
        low = int(place)
        high = min(low + 1, len(ordered_ms) - 1)
        between = ordered_ms[low] + (place - low) * (ordered_ms[high] - ordered_ms[low])
        return between / MS_PER_HOUR

    mean = sum(ordered_ms) / len(ordered_ms) / MS_PER_HOUR
    return DurationSummary(mean, quantile(0.5), quantile(0.8), quantile(0.95))
