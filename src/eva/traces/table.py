"""Our own format: one row per task, as CSV or Parquet with the same columns.

Rows of a job follow each other and repeat what belongs to the job. Only the columns without a
stated default are required, so that a trace can be written by hand:

| column             | meaning                                                  | default          |
|--------------------|----------------------------------------------------------|------------------|
| job                | id of the job                                            |                  |
| arrival_ms         | when it is submitted                                     |                  |
| duration_ms        | how long it takes at full throughput                     |                  |
| workload           | kind, with a number for a distinct demand: `gcn[3]`      |                  |
| gpus               | demand on every family that `per_family` does not name;  | empty: only the  |
| cpu_millis         | thousandths of a vCPU                                    | families named   |
| memory_mib         |                                                          |                  |
| per_family         | `c7i=0/6000/40960;r7i=0/6000/40960` (GPUs/CPU/memory)    | none             |
| throughput_per_s   | iterations per second when alone                         | the workload's   |
| total_iterations   | the job ends when it has done as many                    | duration * speed |
| reports_throughput | whether the job tells its throughput to the scheduler    | true             |
| fetch_ms           | phases of starting and stopping                          | the workload's   |
| build_ms           |                                                          |                  |
| init_ms            |                                                          |                  |
| kill_ms            |                                                          |                  |
| upload_ms          |                                                          |                  |
| image              | an instance that built it before does not build it again | the workload's   |
| shm_mib            | shared memory                                            | the workload's   |

"The workload's" are the figures of `workloads.py`; a workload that is not among them has the
throughput 1, phases of 0, and its own name as image.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from eva.inputs.amounts import GPUS, Unit
from eva.inputs.tables import Columns
from eva.model.resources import Demand, Resources
from eva.model.units import MS_PER_SECOND
from eva.traces.fields import CPU_MILLIS, MEMORY_MIB, MILLISECONDS, Record, shown
from eva.traces.jobs_in import JobFields, TaskFields, TraceBuilder
from eva.traces.trace import TaskPhases, Trace, TraceJob
from eva.traces.workloads import KINDS, Kind, kind_of

Cell = str | int | float | bool | None

COLUMNS = Columns(
    required=("job", "arrival_ms", "duration_ms", "workload", "gpus", "cpu_millis", "memory_mib"),
    optional=(
        "per_family",
        "throughput_per_s",
        "total_iterations",
        "reports_throughput",
        "fetch_ms",
        "build_ms",
        "init_ms",
        "kill_ms",
        "upload_ms",
        "image",
        "shm_mib",
    ),
)

_AMOUNT = ("gpus", "cpu_millis", "memory_mib")
_OF_THE_JOB = (
    "arrival_ms",
    "duration_ms",
    "throughput_per_s",
    "total_iterations",
    "reports_throughput",
)


def read_records(records: Iterable[Record], builder: TraceBuilder, name: str) -> Trace:
    for _, group in groupby(records, key=lambda record: record.values.get("job")):
        _read_job(list(group), builder)
    return builder.finish(name)


def _read_job(tasks: list[Record], builder: TraceBuilder) -> None:
    first = tasks[0]
    kind = _kind(first)
    duration_ms = first.whole("duration_ms", MILLISECONDS)
    stated = first.has("throughput_per_s")
    speed = first.throughput("throughput_per_s") if stated else kind.throughput_per_s
    work = duration_ms / MS_PER_SECOND * speed
    job = JobFields(
        id=first.label("job"),
        arrival_ms=first.whole("arrival_ms", MILLISECONDS),
        duration_ms=duration_ms,
        total_iterations=first.iterations("total_iterations")
        if first.has("total_iterations")
        else work,
        throughput_per_s=speed,
        reports_throughput=first.flag("reports_throughput")
        if first.has("reports_throughput")
        else True,
    )
    for other in tasks[1:]:
        _check_same_job(first, other)
    builder.add(first, job, [_read_task(task) for task in tasks])


def _check_same_job(first: Record, other: Record) -> None:
    for name in _OF_THE_JOB:
        here, there = other.values.get(name), first.values.get(name)
        if here != there:
            other.complain(
                name,
                f"{shown(here)} differs from {shown(there)} in the first row of the job; "
                "it belongs to the job, repeat it",
            )


def _read_task(record: Record) -> TaskFields:
    workload = record.text("workload")
    return TaskFields(workload, _read_demand(record), _read_phases(record, _kind(record)))


def _kind(record: Record) -> Kind:
    name = kind_of(str(record.values.get("workload") or ""))
    return KINDS.get(name) or Kind(name, 1.0, TaskPhases(image=name))


def _read_phases(record: Record, kind: Kind) -> TaskPhases:
    usual = kind.phases

    def stated(name: str, default: int, unit: Unit = MILLISECONDS) -> int:
        return record.whole(name, unit) if record.has(name) else default

    return TaskPhases(
        stated("fetch_ms", usual.fetch_ms),
        stated("build_ms", usual.build_ms),
        stated("init_ms", usual.init_ms),
        stated("kill_ms", usual.kill_ms),
        stated("upload_ms", usual.upload_ms),
        record.label("image") if record.has("image") else usual.image,
        stated("shm_mib", usual.shm_mib, MEMORY_MIB),
    )


def _read_demand(record: Record) -> Demand | None:
    families = _read_families(record) if record.has("per_family") else {}
    if families is None:
        return None
    if families and not any(record.has(name) for name in _AMOUNT):
        return Demand(None, tuple(families.items()))
    return Demand(_read_amount(record), tuple(families.items()))


def _read_amount(record: Record) -> Resources:
    return Resources(
        record.whole("gpus", GPUS),
        record.whole("cpu_millis", CPU_MILLIS),
        record.whole("memory_mib", MEMORY_MIB),
    )


def _read_families(record: Record) -> dict[str, Resources] | None:
    found: dict[str, Resources] = {}
    for part in record.text("per_family").split(";"):
        family, equals, amount = part.strip().partition("=")
        cells = amount.split("/")
        if not family or not equals or len(cells) != len(_AMOUNT):
            form = "FAMILY=GPUS/CPU_MILLIS/MEMORY_MIB"
            record.complain("per_family", f"{shown(part)} is not {form}")
            return None
        if family in found:
            record.complain("per_family", f"names {family!r} twice; keep one")
        named = dict(zip(_AMOUNT, cells, strict=True))
        found[family] = _read_amount(record.inside(f"per_family {family}", named))
    return found


def rows_of(trace: Trace) -> Iterator[dict[str, Cell]]:
    """The trace as rows of all our columns, every value stated."""
    for job in trace.jobs:
        for index in range(len(job.phases)):
            yield _row_of(job, index)


def _row_of(job: TraceJob, index: int) -> dict[str, Cell]:
    task, phases = job.spec.tasks[index], job.phases[index]
    default = task.demand.default
    return {
        "job": job.id,
        "arrival_ms": job.arrival_ms,
        "duration_ms": job.duration_ms,
        "workload": task.workload,
        "gpus": None if default is None else default.gpus,
        "cpu_millis": None if default is None else default.cpu_millis,
        "memory_mib": None if default is None else default.memory_mib,
        "per_family": ";".join(
            f"{family}={'/'.join(map(str, amount))}" for family, amount in task.demand.per_family
        ),
        "throughput_per_s": job.throughput_per_s,
        "total_iterations": job.total_iterations,
        "reports_throughput": job.reports_throughput,
        "fetch_ms": phases.fetch_ms,
        "build_ms": phases.build_ms,
        "init_ms": phases.init_ms,
        "kill_ms": phases.kill_ms,
        "upload_ms": phases.upload_ms,
        "image": phases.image,
        "shm_mib": phases.shm_mib,
    }
