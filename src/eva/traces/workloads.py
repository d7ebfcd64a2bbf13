"""The paper's ten workloads, as facts.

Demands and delays are those of the paper's workload table (Chang and Venkataraman, "Eva:
Cost-Efficient Cloud-Based Cluster Scheduling", EuroSys 2025, Table 7); standalone throughputs,
and how a delay divides into its phases, are what the traces of its artifact state. There, the
launch delay of the table is the `init` phase alone, with fetching and building on top of it, and
the checkpoint delay of the table is saving and loading, upload and fetch together, with killing on
top of it.

Nine *kinds* stand behind the ten workloads: ResNet18 appears with two and with four tasks. A
trace names a task by its kind and a number, `gcn[3]`: numbers tell distinct demands apart, which
the scheduler has to learn as different workloads, while the truth looks at the kind alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from eva.model.ids import Workload
from eva.model.jobs import StandaloneThroughput, TaskSpec
from eva.model.resources import Demand, Resources
from eva.model.units import MIB_PER_GB, MILLIS_PER_CPU, MS_PER_SECOND
from eva.traces.trace import TaskPhases

SOURCE = "Chang and Venkataraman, Eva, EuroSys 2025: workload table and artifact traces"

FAST_CPU_FAMILIES = ("c7i", "r7i")  # a faster core: the same work with fewer of them


@dataclass(frozen=True, slots=True)
class Kind:
    """What the ground truth knows a task by."""

    name: str
    throughput_per_s: float  # of a single-task job
    phases: TaskPhases


@dataclass(frozen=True, slots=True)
class PaperWorkload:
    """A row of the paper's workload table. All tasks of a job are alike."""

    name: str
    kind: Kind
    description: str
    tasks: int
    demand: Demand
    throughput_per_s: float

    @property
    def spec(self) -> TaskSpec:
        """One task of it; all demands of a kind in the table are equal, so its number is 0."""
        return TaskSpec(
            numbered(self.kind.name, 0),
            self.demand,
            StandaloneThroughput(self.throughput_per_s),
            self.kind.phases.delays,
        )


def numbered(kind: str, index: int) -> Workload:
    return Workload(f"{kind}[{index}]")


def kind_of(workload: str) -> str:
    """The name before the bracket."""
    return workload.partition("[")[0]


def _kind(
    name: str,
    throughput_per_s: float,
    seconds: tuple[int, int, int, int],
    image: int,
    shm_gb: int,
) -> Kind:
    """`seconds`: fetch, init, kill, upload. Building an image takes 10 s for every kind."""
    fetch, init, kill, upload = (value * MS_PER_SECOND for value in seconds)
    build = 10 * MS_PER_SECOND
    phases = TaskPhases(fetch, build, init, kill, upload, str(image), shm_gb * MIB_PER_GB)
    return Kind(name, throughput_per_s, phases)


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        _kind("resnet18", 2.1, (1, 80, 1, 1), image=7, shm_gb=4),
        _kind("vit", 2.3503, (1, 143, 1, 2), image=8, shm_gb=4),
        _kind("cyclegan", 1.1394, (2, 2, 1, 5), image=1, shm_gb=1),
        _kind("gpt2", 3.3055, (10, 15, 1, 20), image=3, shm_gb=1),
        _kind("sage", 2.4330, (1, 160, 1, 1), image=5, shm_gb=16),
        _kind("gcn", 0.1601, (1, 28, 1, 1), image=2, shm_gb=8),
        _kind("a3c", 12.7362, (1, 10, 1, 1), image=0, shm_gb=1),
        _kind("seq", 0.008324, (3, 12, 1, 5), image=6, shm_gb=1),
        _kind("openfoam", 8.4, (7, 1, 1, 14), image=4, shm_gb=1),
    )
}


def _demand(gpus: int, cpus: int, fast_cpus: int, memory_gb: int) -> Demand:
    def amount(count: int) -> Resources:
        return Resources(gpus, count * MILLIS_PER_CPU, memory_gb * MIB_PER_GB)

    if cpus == fast_cpus:
        return Demand(amount(cpus))
    return Demand(amount(cpus), tuple((family, amount(fast_cpus)) for family in FAST_CPU_FAMILIES))


def _workload(
    name: str,
    kind: str,
    description: str,
    demand: tuple[int, int, int, int],
    tasks: int = 1,
    throughput_per_s: float | None = None,
) -> PaperWorkload:
    """`demand`: GPUs, CPUs on p3, CPUs on c7i and r7i, GB of memory."""
    speed = KINDS[kind].throughput_per_s if throughput_per_s is None else throughput_per_s
    return PaperWorkload(name, KINDS[kind], description, tasks, _demand(*demand), speed)


WORKLOADS: tuple[PaperWorkload, ...] = (
    _workload("resnet18-2", "resnet18", "ResNet18 image classification", (1, 4, 4, 24), 2, 2.6),
    _workload("resnet18-4", "resnet18", "ResNet18 image classification", (1, 4, 4, 24), 4, 2.6),
    _workload("vit", "vit", "ViT image classification", (2, 8, 8, 60)),
    _workload("cyclegan", "cyclegan", "CycleGAN image translation", (1, 4, 4, 10)),
    _workload("gpt2", "gpt2", "GPT2 language modelling", (4, 4, 4, 10)),
    _workload("graphsage", "sage", "GraphSAGE graph embedding", (1, 8, 8, 50)),
    _workload("gcn", "gcn", "GCN graph embedding", (0, 12, 6, 40)),
    _workload("a3c", "a3c", "A3C reinforcement learning", (0, 10, 4, 8)),
    _workload("diamond", "seq", "Diamond sequence alignment", (0, 14, 8, 16)),
    _workload("openfoam", "openfoam", "OpenFOAM fluid dynamics", (0, 8, 6, 8)),
)
