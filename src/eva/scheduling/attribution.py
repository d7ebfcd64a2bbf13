"""Whose fault is a slow job: from observed throughputs to entries of the co-location table.

A job of one task says plainly how it runs beside its neighbours. A job of several tasks runs at
the pace of its slowest, and every task of it reports that one pace. The three rules of the paper
pick the task to hold responsible, one entry at a time:

1. none of the job's surroundings is recorded: the task with the most neighbours;
2. some are recorded lower than observed: the lowest of them, which is thereby raised;
3. all that are recorded are higher: the task with the most neighbours among the unrecorded.

What the rules leave open is decided here as follows.

- *Alone* is 1 by definition and never an entry: tasks without neighbours are passed over, and a
  job whose tasks all run alone says nothing, however slow it is.
- *Recorded equal to observed* explains the observation: nothing is left to record.
- *All recorded, all higher*: the observation contradicts the table, so something it assumes has
  changed. The lowest is lowered to the observation, the smallest correction that explains it.
- *Ties* go to the most neighbours, then to the lowest task id.
- *Tasks of one job that disagree* count at the slowest.
- *A sibling out of sight* (its instance is not in the call, or not wholly reporting) may be the
  straggler, so nobody else is blamed for it: only rule 2 is applied, which is safe regardless.
- *Two single-task jobs that disagree about one entry* count at the slower.

The paper observes a job at every round, changed or not, and records one entry each time. Here a
call applies the rules to each job until they have nothing more to say, so that an observation that
did not change need not be repeated, and repeating it does no harm.

The promise is that recorded values are lower bounds of the true co-location throughput, and that
more observations only raise them. It needs this: the truth belongs to (workload, neighbours) and
does not change; observations are exact, and made while every neighbour runs; the pace of a job is
the minimum over its tasks. Rule 1 may then blame an innocent task, which is pessimistic but still
a lower bound, because no task of a job is slower than the job. When job A's only explanation is
raised on the word of job B, A becomes unexplained until it is seen again: a caller that keeps
quiet about unchanged observations should still repeat those of multi-task jobs now and then.
With noise, single-task observations overwrite, and neither half of the promise holds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eva.model.colocation import Entry, Neighbours, ThroughputTable, neighbours, without
from eva.model.ids import JobId, TaskId, Workload


@dataclass(frozen=True, slots=True)
class TaskObservation:
    """What one task reports: its throughput over its standalone throughput.

    None, or anything that is not a positive number, means that it does not report. `job_tasks`
    is how many tasks its job has in all, seen or not.
    """

    task: TaskId
    job: JobId
    workload: Workload
    throughput: float | None
    job_tasks: int = 1

    @property
    def reports(self) -> bool:
        return self.throughput is not None and 0.0 < self.throughput < math.inf


InstanceObservation = Sequence[TaskObservation]  # every task on one instance


@dataclass(frozen=True, slots=True)
class _Sighting:
    """One task among its neighbours, at the pace it was seen to run."""

    seen: TaskObservation
    beside: Neighbours
    throughput: float

    @property
    def key(self) -> tuple[Workload, Neighbours]:
        return self.seen.workload, self.beside


class _Draft:
    """The table with the entries of this call laid over it."""

    def __init__(self, table: ThroughputTable) -> None:
        self._table = table
        self._fresh: dict[tuple[Workload, Neighbours], float] = {}

    def recorded(self, sighting: _Sighting) -> float | None:
        fresh = self._fresh.get(sighting.key)
        return self._table.recorded(*sighting.key) if fresh is None else fresh

    def record(self, sighting: _Sighting, throughput: float) -> None:
        self._fresh[sighting.key] = throughput

    def record_single(self, sighting: _Sighting) -> None:
        self.record(sighting, min(sighting.throughput, self._fresh.get(sighting.key, 1.0)))

    def entries(self) -> tuple[Entry, ...]:
        """What differs from the table, in a stated order."""
        return tuple(
            Entry(workload, beside, value)
            for (workload, beside), value in sorted(self._fresh.items())
            if self._table.recorded(workload, beside) != value
        )


def attribute(groups: Iterable[InstanceObservation], table: ThroughputTable) -> tuple[Entry, ...]:
    """The entries by which `table` should change after observing these instances.

    The order of `groups` and of the tasks in them does not matter. The cost is linear in the
    number of tasks, and applying the answer and asking again changes nothing for any one job.
    """
    draft = _Draft(table)
    jobs: defaultdict[JobId, list[_Sighting]] = defaultdict(list)
    for group in groups:
        for sighting in _sightings(group):
            if sighting.seen.job_tasks > 1:
                jobs[sighting.seen.job].append(sighting)
            elif sighting.beside:
                draft.record_single(sighting)
    for job in sorted(jobs):
        _settle(jobs[job], draft)
    return draft.entries()


def _sightings(group: InstanceObservation) -> list[_Sighting]:
    """The tasks of one instance, or nothing unless all of them report."""
    if not all(seen.reports for seen in group):
        return []
    crowd = neighbours(seen.workload for seen in group)
    return [
        _Sighting(seen, without(crowd, seen.workload), min(1.0, seen.throughput))
        for seen in group
        if seen.throughput is not None
    ]


def _settle(sightings: Sequence[_Sighting], draft: _Draft) -> None:
    """Apply the rules to one job until its observation is explained.

    A step of rule 2 raises one entry to the observation, and then the observation is explained; so
    repeating it is raising every entry that is too low, and rules 1 and 3 are needed once at most.
    """
    observed = min(sighting.throughput for sighting in sightings)
    known: list[tuple[float, _Sighting]] = []
    unknown: list[_Sighting] = []
    for sighting in sightings:
        recorded = draft.recorded(sighting)
        if recorded is not None:
            known.append((recorded, sighting))
        elif sighting.beside:
            unknown.append(sighting)
    for recorded, sighting in known:
        if recorded < observed:  # rule 2, for the lowest and then for the next
            draft.record(sighting, observed)
    explained = any(recorded <= observed for recorded, _ in known)
    if explained or len(sightings) < sightings[0].seen.job_tasks:
        return
    if unknown:  # rules 1 and 3
        draft.record(min(unknown, key=_most_neighbours_first), observed)
    elif known:  # a contradiction
        lowest = min(recorded for recorded, _ in known)
        blamed = [sighting for recorded, sighting in known if recorded == lowest]
        draft.record(min(blamed, key=_most_neighbours_first), observed)


def _most_neighbours_first(sighting: _Sighting) -> tuple[int, TaskId]:
    return -len(sighting.beside), sighting.seen.task
