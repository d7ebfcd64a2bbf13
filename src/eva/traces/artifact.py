"""The trace format of the paper's artifact: one JSON object, keyed by job number.

Each job has `name` (workload, with its number in brackets), `arrival_time` and `duration` (s),
`init_delay` (s), `full_throughput` (iterations/s), `total_iters`, `support_throughput_aware`, and
`tasks`, an object keyed by task number with `name`, `demand` (`{"any": [gpu, cpu, memory_gb]}` or
one entry per family), `shm_size` (GB), `image_id`, and `fetch_delay`, `build_image_delay`,
`kill_delay`, `upload_delay` (s). This is also the JSON that we write. Keys beyond these are let
pass: files of this format are not ours to restrict.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from eva.inputs.amounts import CPUS, GPUS, MEMORY_GB
from eva.inputs.problems import Problems
from eva.model.errors import InputError
from eva.model.resources import Demand, Resources
from eva.model.units import MIB_PER_GB, MILLIS_PER_CPU, MS_PER_SECOND
from eva.traces.fields import SECONDS, Record, shown
from eva.traces.jobs_in import JobFields, Setting, TaskFields, TraceBuilder
from eva.traces.trace import TaskPhases, Trace, TraceJob

ANY_FAMILY = "any"
_DEMAND_FIELDS = ("gpu", "cpu", "memory_gb")


class _Repeated(dict[str, object]):
    """An object in which some key stands twice; JSON would silently keep the last."""

    repeated: tuple[str, ...] = ()


def read_artifact(path: Path, text: str, setting: Setting) -> Trace:
    problems = Problems(str(path))
    content = _parse(text, problems)
    if not isinstance(content, dict):
        raise problems.fail(0, "is JSON but no object of jobs, keyed by job number")
    builder = TraceBuilder(problems, setting)
    file = Record(problems, content)
    _check_repeated(file)
    for key, value in content.items():
        if isinstance(value, dict):
            _read_job(file.inside(f"job {key!r}", value), key, builder)
        else:
            file.complain(f"job {key!r}", f"{shown(value)} is not an object")
    return builder.finish(path.name.partition(".")[0])


def _parse(text: str, problems: Problems) -> object:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        complaint = f"is not whole JSON (column {error.colno}: {error.msg}); was it cut short?"
        raise problems.fail(error.lineno, complaint) from None
    except ValueError as error:  # an integer of thousands of digits
        raise problems.fail(0, f"holds an absurd number: {error}") from None
    except RecursionError:
        raise problems.fail(0, "is nested too deeply to be a trace") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    keys = [key for key, _ in pairs]
    marked = _Repeated(plain)
    marked.repeated = tuple(sorted({key for key in keys if keys.count(key) > 1}))
    return marked


def _check_repeated(record: Record) -> None:
    if isinstance(record.values, _Repeated):
        for key in record.values.repeated:
            record.complain(key, "is there twice; keep one")


def _read_job(record: Record, key: str, builder: TraceBuilder) -> None:
    _check_repeated(record)
    workload = record.text("name")
    init_ms = record.whole("init_delay", SECONDS)
    job = JobFields(
        id=key,
        arrival_ms=record.whole("arrival_time", SECONDS),
        duration_ms=record.whole("duration", SECONDS),
        total_iterations=record.iterations("total_iters"),
        throughput_per_s=record.throughput("full_throughput"),
        reports_throughput=record.flag("support_throughput_aware"),
    )
    tasks = _part(record, "tasks")
    if tasks is None:
        return
    _check_repeated(tasks)
    builder.add(record, job, [_read_task(tasks, key, workload, init_ms) for key in tasks.values])


def _part(record: Record, name: str) -> Record | None:
    """The object under `name`, or None and a complaint."""
    value = record.values.get(name)
    if isinstance(value, dict):
        return record.inside(name, value)
    record.complain(name, "is missing" if value is None else f"{shown(value)} is not an object")
    return None


def _read_task(tasks: Record, key: str, workload: str, init_ms: int) -> TaskFields:
    record = _part(tasks, key)
    if record is None:
        return TaskFields(workload, None, TaskPhases())
    _check_repeated(record)
    phases = TaskPhases(
        fetch_ms=record.whole("fetch_delay", SECONDS),
        build_ms=record.whole("build_image_delay", SECONDS),
        init_ms=init_ms,
        kill_ms=record.whole("kill_delay", SECONDS),
        upload_ms=record.whole("upload_delay", SECONDS),
        image=record.label("image_id"),
        shm_mib=record.whole("shm_size", MEMORY_GB),
    )
    return TaskFields(workload, _read_demand(record), phases)


def _read_demand(task: Record) -> Demand | None:
    record = _part(task, "demand")
    if record is None:
        return None
    _check_repeated(record)
    amounts = {family: _read_amount(record, family) for family in record.values}
    stated = {family: amount for family, amount in amounts.items() if amount is not None}
    if not amounts:
        record.complain("", f"is empty; write {{{ANY_FAMILY!r}: [gpu, cpu, memory_gb]}}")
    if len(stated) < len(amounts) or not amounts:
        return None
    default = stated.pop(ANY_FAMILY, None)
    return Demand(default, tuple(stated.items()))


def _read_amount(demand: Record, family: str) -> Resources | None:
    triple = demand.values[family]
    if not isinstance(triple, list) or len(triple) != len(_DEMAND_FIELDS):
        demand.complain(family, f"{shown(triple)} is not [gpu, cpu, memory_gb]")
        return None
    record = demand.inside(family, dict(zip(_DEMAND_FIELDS, triple, strict=True)))
    return Resources(
        record.whole("gpu", GPUS), record.whole("cpu", CPUS), record.whole("memory_gb", MEMORY_GB)
    )


def artifact_text(trace: Trace) -> str:
    """The trace as JSON. Tasks are numbered through the whole trace, as in the original files."""
    content: dict[str, object] = {}
    number = 0
    for job in trace.jobs:
        _check_uniform(job)
        tasks = {}
        for index in range(len(job.phases)):
            tasks[str(number)] = _task_out(job, index)
            number += 1
        content[job.id] = {
            "name": job.spec.tasks[0].workload,
            "arrival_time": _plain(job.arrival_ms / MS_PER_SECOND),
            "duration": _plain(job.duration_ms / MS_PER_SECOND),
            "init_delay": _plain(job.init_ms / MS_PER_SECOND),
            "full_throughput": job.throughput_per_s,
            "total_iters": _plain(job.total_iterations),
            "support_throughput_aware": job.reports_throughput,
            "tasks": tasks,
        }
    return json.dumps(content, indent=1) + "\n"


def _check_uniform(job: TraceJob) -> None:
    """The format states the workload and the init delay once per job."""
    workloads = {task.workload for task in job.spec.tasks}
    if len(workloads) > 1 or len({phases.init_ms for phases in job.phases}) > 1:
        raise InputError.single(
            f"job {job.id!r}", "has tasks that differ, which JSON traces cannot say; write CSV"
        )


def _task_out(job: TraceJob, index: int) -> dict[str, object]:
    demand, phases = job.spec.tasks[index].demand, job.phases[index]
    families = dict(demand.per_family)
    if demand.default is not None:
        families = {ANY_FAMILY: demand.default} | families
    image = phases.image
    return {
        "name": f"node{index}",
        "demand": {family: _amount_out(amount) for family, amount in families.items()},
        "shm_size": _plain(phases.shm_mib / MIB_PER_GB),
        "image_id": int(image) if image.isdecimal() and str(int(image)) == image else image,
        "fetch_delay": _plain(phases.fetch_ms / MS_PER_SECOND),
        "build_image_delay": _plain(phases.build_ms / MS_PER_SECOND),
        "kill_delay": _plain(phases.kill_ms / MS_PER_SECOND),
        "upload_delay": _plain(phases.upload_ms / MS_PER_SECOND),
    }


def _amount_out(amount: Resources) -> list[int | float]:
    return [
        amount.gpus,
        _plain(amount.cpu_millis / MILLIS_PER_CPU),
        _plain(amount.memory_mib / MIB_PER_GB),
    ]


def _plain(value: float) -> int | float:
    """Whole numbers are written without a fraction."""
    return math.floor(value) if value == math.floor(value) else value
