"""Alibaba's pod list (`openb_pod_list_*.csv` of cluster-trace-gpu-v2023) as a trace.

Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent", USENIX ATC 2023. One pod is one job of one task, as in the paper: pods that
failed are left out (those that were still pending when the trace was taken are not), GPUs are
rounded up to whole ones, CPU to whole vCPUs and memory to whole GB, and pods that no instance
type can host are dropped. On `openb_pod_list_default.csv` with the paper's catalog this leaves
exactly the paper's 6,274 jobs (8,152 pods, 1,870 failed, 8 too large), and its durations. The GPU
mix that the paper prints (13.41% without GPU, 86.17% with one, ...) is not that of these jobs: it
is the mix of all 8,111 pods that some type can host, failed ones included.

The list has no arrivals and no workloads that fit the paper's setting: arrivals are drawn from a
Poisson process in the order of the file, workloads per distinct demand. Variants of the list
without times can only be used with drawn durations.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from eva.inputs.problems import Problems, did_you_mean
from eva.inputs.tables import Columns, Table
from eva.model.catalog import Catalog
from eva.model.resources import NOTHING, Demand, Resources
from eva.model.units import MIB_PER_GB, MILLIS_PER_CPU
from eva.traces.assembly import WorkloadNames, assembled, shape_of
from eva.traces.drawing import Drawing, Durations
from eva.traces.fields import CPU_MILLIS, GPU_MILLIS, GPU_SHARES, MEMORY_MIB, SECONDS, Record
from eva.traces.jobs_in import Setting
from eva.traces.tables_in_out import require_columns
from eva.traces.timing import gavel_durations, poisson_arrivals
from eva.traces.trace import Trace

_DEMAND = ("name", "cpu_milli", "memory_mib", "num_gpu")
_TIMES = ("pod_phase", "creation_time", "deletion_time")
_UNUSED = ("gpu_milli", "gpu_spec", "qos", "scheduled_time")
COLUMNS = Columns(required=(*_DEMAND, *_TIMES), optional=_UNUSED)
WITHOUT_TIMES = Columns(required=_DEMAND, optional=(*_TIMES, *_UNUSED))

_FAILED = "Failed"
_PHASES = ("Pending", "Running", "Succeeded", _FAILED, "Unknown")
_GPU_MILLIS = 1_000


@dataclass(frozen=True, slots=True)
class _Pod:
    demand: Resources
    duration_ms: int


def read_alibaba(
    path: Path, table: Table, problems: Problems, setting: Setting, drawing: Drawing
) -> Trace:
    """`problems` are those that reading the table found; what is wrong with the pods joins them."""
    if drawing.durations is Durations.TRACED and not set(_TIMES) & set(table.columns):
        raise problems.fail(
            table.header_line,
            f"has no durations (columns {', '.join(_TIMES)}); draw them: durations `gavel`",
        )
    traced = drawing.durations is Durations.TRACED
    require_columns(table, COLUMNS if traced else WITHOUT_TIMES, problems)
    pods, failed = _read_pods(table, drawing.durations, problems)
    if not pods and not len(problems):
        problems.add(0, "holds no pod that did not fail; a trace needs jobs")
    problems.raise_if_any()
    kept, notices = _hostable(pods, setting.catalog)
    if not kept:
        complaint = f"no pod fits any instance type of catalog {setting.catalog.name!r}"
        raise problems.fail(0, complaint)
    if failed:
        notices = (f"left out {failed:,} pods that failed", *notices)
    return _trace(path.name.partition(".")[0], kept, drawing, notices)


def _trace(name: str, pods: list[_Pod], drawing: Drawing, notices: tuple[str, ...]) -> Trace:
    names = WorkloadNames.drawn(drawing.seed)
    demands = [Demand(pod.demand) for pod in pods]
    durations = (
        [pod.duration_ms for pod in pods]
        if drawing.durations is Durations.TRACED
        else gavel_durations(len(pods), drawing.seed)
    )
    return assembled(
        name,
        [shape_of(names.of(demand), demand) for demand in demands],
        poisson_arrivals(len(pods), drawing.mean_interarrival_ms, drawing.seed),
        durations,
        notices,
    )


def _read_pods(table: Table, durations: Durations, problems: Problems) -> tuple[list[_Pod], int]:
    """Pods that did not fail, in the order of the file, and how many did."""
    pods: list[_Pod] = []
    names: set[str] = set()
    failed = 0
    phased = "pod_phase" in table.columns
    for row in table.rows:
        record = Record(problems, row.cells, row.line)
        name = record.text("name")
        if name in names:
            record.complain("name", f"{name!r} is there twice; rename one")
        names.add(name)
        if phased and _phase(record) == _FAILED:
            failed += 1
            continue
        traced_ms = _duration_ms(record) if durations is Durations.TRACED else 0
        pods.append(_Pod(_demand(record), traced_ms))
    return pods, failed


def _phase(record: Record) -> str:
    """A phase of Kubernetes; what is spelled otherwise would count as a pod that did not fail."""
    phase = record.text("pod_phase")
    if phase and phase not in _PHASES:
        hint = did_you_mean(phase, _PHASES)
        record.complain("pod_phase", f"{phase!r} is none of {', '.join(_PHASES)}{hint}")
    return phase


def _demand(record: Record) -> Resources:
    gpu_millis = record.whole("num_gpu", GPU_SHARES)
    if gpu_millis == 0 and record.has("gpu_milli"):  # a share of one GPU
        gpu_millis = record.whole("gpu_milli", GPU_MILLIS)
    demand = Resources(
        _up(gpu_millis, _GPU_MILLIS) // _GPU_MILLIS,
        _up(record.whole("cpu_milli", CPU_MILLIS), MILLIS_PER_CPU),
        _up(record.whole("memory_mib", MEMORY_MIB), MIB_PER_GB),
    )
    if demand == NOTHING:
        record.complain("", "asks for nothing; a pod needs a GPU, CPU or memory")
    return demand


def _up(amount: int, unit: int) -> int:
    return -(-amount // unit) * unit


def _duration_ms(record: Record) -> int:
    created_ms = record.whole("creation_time", SECONDS)
    deleted_ms = record.whole("deletion_time", SECONDS)
    if deleted_ms < created_ms and record.has("deletion_time"):
        record.complain("deletion_time", "is before creation_time; swap them?")
    return deleted_ms - created_ms


def _hostable(pods: list[_Pod], catalog: Catalog) -> tuple[list[_Pod], tuple[str, ...]]:
    """Pods that some instance type can host, and a word on those that none can."""
    fits = {
        demand: any(demand.fits_in(kind.capacity) for kind in catalog)
        for demand in {pod.demand for pod in pods}
    }
    kept = [pod for pod in pods if fits[pod.demand]]
    dropped = Counter(pod.demand for pod in pods if not fits[pod.demand])
    if not dropped:
        return kept, ()
    shapes = "; ".join(f"{count} of {demand}" for demand, count in sorted(dropped.items()))
    notice = (
        f"dropped {dropped.total():,} of {len(pods):,} pods that no instance type of catalog "
        f"{catalog.name!r} can host: {shapes}"
    )
    return kept, (notice,)
