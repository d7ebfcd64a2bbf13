"""What every generator ends with: a demand and a duration become a job of some workload.

A trace of pods says what a task needs and not what it does. As in the paper's evaluation, every
distinct demand is given one workload, drawn at random from the nine kinds, and a number within
the kind: tasks of equal demand are the same workload, tasks of different demand never are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from eva.model.ids import JobId, Workload
from eva.model.resources import Demand
from eva.model.units import MS_PER_SECOND
from eva.traces.rng import Source, generator
from eva.traces.trace import SpecPool, Trace, TraceJob
from eva.traces.workloads import KINDS, Kind, kind_of, numbered

_KINDS = tuple(KINDS.values())


@dataclass(slots=True)
class WorkloadNames:
    """Gives each distinct demand its workload when it is first seen."""

    rng: np.random.Generator
    _names: dict[Demand, Workload] = field(default_factory=dict)
    _next: Counter[str] = field(default_factory=Counter)

    @classmethod
    def drawn(cls, seed: int) -> WorkloadNames:
        return cls(generator(seed, Source.WORKLOADS))

    @classmethod
    def continuing(cls, trace: Trace, rng: np.random.Generator) -> WorkloadNames:
        """Names for demands that `trace` does not have yet; those it has keep theirs.

        Workloads of a user's own are passed over: what they are like is not known here.
        """
        names = cls(rng)
        for job in trace.jobs:
            for task in job.spec.tasks:
                if kind_of(task.workload) in KINDS:
                    names._names.setdefault(task.demand, task.workload)
        names._next.update(kind_of(workload) for workload in set(names._names.values()))
        return names

    def of(self, demand: Demand) -> Workload:
        try:
            return self._names[demand]
        except KeyError:
            kind = _KINDS[int(self.rng.integers(len(_KINDS)))].name
            taken = set(self._names.values())
            while (name := numbered(kind, self._next[kind])) in taken:
                self._next[kind] += 1
            self._next[kind] += 1
            self._names[demand] = name
            return name


@dataclass(frozen=True, slots=True)
class JobShape:
    """A job about to be made: `tasks` equal tasks of one demand."""

    kind: Kind
    workload: Workload
    demand: Demand
    throughput_per_s: float
    tasks: int = 1


def shape_of(workload: Workload, demand: Demand, tasks: int = 1) -> JobShape:
    kind = KINDS[kind_of(workload)]
    return JobShape(kind, workload, demand, kind.throughput_per_s, tasks)


def assembled(
    name: str,
    shapes: Iterable[JobShape],
    arrivals_ms: Iterable[int],
    durations_ms: Iterable[int],
    notices: tuple[str, ...] = (),
) -> Trace:
    """Jobs numbered from 0 in order of arrival."""
    pool = SpecPool()
    jobs = (
        make_job(pool, JobId(str(number)), shape, arrival_ms, duration_ms)
        for number, (shape, arrival_ms, duration_ms) in enumerate(
            zip(shapes, arrivals_ms, durations_ms, strict=True)
        )
    )
    return Trace(name, tuple(jobs), notices)


def make_job(
    pool: SpecPool, job: JobId, shape: JobShape, arrival_ms: int, duration_ms: int
) -> TraceJob:
    phases, speed = shape.kind.phases, shape.throughput_per_s
    task = pool.task(shape.workload, shape.demand, speed, phases.delays)
    return TraceJob(
        id=job,
        arrival_ms=arrival_ms,
        duration_ms=duration_ms,
        spec=pool.job(shape.workload, (task,) * shape.tasks),
        total_iterations=duration_ms / MS_PER_SECOND * speed,
        throughput_per_s=speed,
        phases=(phases,) * shape.tasks,
    )
