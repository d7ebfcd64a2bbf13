"""From checked records to a trace: what is common to every format that states whole jobs.

A format hands over one `TaskFields` per task; here they become shared specs, and the questions
that need a catalog or the whole trace are asked: does some instance type host the task, does the
ground truth know the workload, is a job named twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from eva.inputs.problems import Problems, did_you_mean
from eva.model.catalog import Catalog
from eva.model.ids import JobId, Workload
from eva.model.jobs import TaskSpec
from eva.model.resources import NOTHING, Demand
from eva.model.units import MS_PER_SECOND
from eva.scheduling.reservation_price import price_book, why_unplaceable
from eva.traces.fields import Record
from eva.traces.trace import SpecPool, TaskPhases, Trace, TraceJob
from eva.traces.workloads import kind_of

_CUT_OFF = 1.0  # formats that count whole iterations leave out the last
_ROUNDING = 1e-6  # of durations to milliseconds, and of long sums


@dataclass(frozen=True, slots=True)
class Setting:
    """Against what a trace is read: the price list, and the workloads that the truth knows."""

    catalog: Catalog
    workloads: Collection[str]


@dataclass(frozen=True, slots=True)
class TaskFields:
    workload: str
    demand: Demand | None  # None where it could not be read; that problem is listed already
    phases: TaskPhases


@dataclass(frozen=True, slots=True)
class JobFields:
    id: str
    arrival_ms: int
    duration_ms: int
    total_iterations: float
    throughput_per_s: float
    reports_throughput: bool = True


@dataclass(slots=True)
class TraceBuilder:
    """Collects jobs and problems; `finish` answers a trace or raises all problems at once."""

    problems: Problems
    setting: Setting
    _jobs: dict[str, TraceJob] = field(default_factory=dict)
    _ids: set[str] = field(default_factory=set)
    _pool: SpecPool = field(default_factory=SpecPool)
    _verdicts: dict[TaskSpec, str] = field(default_factory=dict)

    def add(self, record: Record, job: JobFields, tasks: list[TaskFields]) -> None:
        """One more job; `record` is where to complain about it."""
        if job.id and job.id in self._ids:
            record.complain("", f"the job id {job.id!r} is there twice; rename one")
        self._ids.add(job.id)
        if not tasks:
            record.complain("tasks", "there are none; a job needs at least one")
            return
        specs = []
        for index, task in enumerate(tasks):
            if task.demand is None or not task.workload:
                return
            stated = job.throughput_per_s if job.reports_throughput else None
            spec = self._pool.task(Workload(task.workload), task.demand, stated, task.phases.delays)
            if verdict := self._verdict(spec):
                record.complain(f"task {index}" if len(tasks) > 1 else "", verdict)
            specs.append(spec)
        self._jobs[job.id] = TraceJob(
            JobId(job.id),
            job.arrival_ms,
            job.duration_ms,
            self._pool.job(specs[0].workload, tuple(specs)),
            job.total_iterations,
            job.throughput_per_s,
            tuple(task.phases for task in tasks),
            job.reports_throughput,
        )

    def finish(self, name: str) -> Trace:
        if not self._ids and not len(self.problems):
            self.problems.add(0, "holds no jobs; a trace needs at least one")
        self.problems.raise_if_any()
        jobs = list(self._jobs.values())
        notices = (*self._unheard_families(), *_at_odds(jobs))
        return Trace(name, (), notices).with_jobs(jobs)

    def _unheard_families(self) -> Iterator[str]:
        """A slip of the pen would keep a task from a family without a word."""
        catalog = self.setting.catalog
        stated = {family for spec in self._verdicts for family, _ in spec.demand.per_family}
        for family in sorted(stated - set(catalog.families)):
            hint = did_you_mean(family, catalog.families)
            yield (
                f"catalog {catalog.name} has no family {family!r}, so demands on it count for "
                f"nothing{hint}"
            )

    def _verdict(self, spec: TaskSpec) -> str:
        """What is wrong with a task of this spec, or nothing; found once per distinct spec."""
        try:
            return self._verdicts[spec]
        except KeyError:
            found = self._verdicts[spec] = self._judge(spec)
            return found

    def _judge(self, spec: TaskSpec) -> str:
        catalog, known = self.setting.catalog, self.setting.workloads
        demand = spec.demand
        if NOTHING in (demand.default, *(amount for _, amount in demand.per_family)):
            return "asks for nothing; a task needs a GPU, CPU or memory"
        if price_book(catalog).price(spec) is None:
            return why_unplaceable(catalog, spec)
        kind = kind_of(spec.workload)
        if kind not in known:
            return (
                f"the workload {spec.workload!r} is unknown{did_you_mean(kind, known)} "
                f"(known: {', '.join(known)}; an interference matrix of your own adds more)"
            )
        return ""


def _at_odds(jobs: Sequence[TraceJob]) -> Iterator[str]:
    """A word on jobs whose iterations take another time than their duration says."""
    found = [job for job in jobs if _iterations_off(job) > _CUT_OFF]
    if found:
        worst = max(found, key=_iterations_off)
        takes_s = worst.total_iterations / worst.throughput_per_s
        yield (
            f"in {len(found):,} of {len(jobs):,} jobs the iterations do not take as long as the "
            f"duration says (job {worst.id!r}: {takes_s:,.0f} s at full throughput, stated "
            f"{worst.duration_ms / MS_PER_SECOND:,.0f} s); a job ends by its iterations"
        )


def _iterations_off(job: TraceJob) -> float:
    stated = job.duration_ms / MS_PER_SECOND * job.throughput_per_s
    return abs(stated - job.total_iterations) - _ROUNDING * job.total_iterations
