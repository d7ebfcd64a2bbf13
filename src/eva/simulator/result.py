"""What a simulation yields: totals, and rows per job and instance from which reports are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eva.model.resources import Resources
from eva.model.units import MS_PER_HOUR


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job that ended. `idle_ms` is its completion time less the time in which all tasks ran."""

    job: str
    workload: str
    tasks: int
    state: str
    arrival_ms: int
    ended_ms: int
    ran_ms: int
    standalone_ms: int
    migrations: int
    failures: int

    @property
    def jct_ms(self) -> int:
        return self.ended_ms - self.arrival_ms

    @property
    def idle_ms(self) -> int:
        return self.jct_ms - self.ran_ms


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """One instance that was paid for, and what became of its time (`spent_ms`, by category)."""

    instance: str
    type: str
    hourly_micros: int
    launched_ms: int
    acquired_ms: int
    ready_ms: int | None
    ended_ms: int
    cost_micros: int
    tasks_hosted: int
    task_ms: int
    running_ms: int
    speed_ms: float
    used_ms: tuple[int, int, int]  # GPU-ms, millicore-ms, MiB-ms
    capacity: Resources
    spent_ms: Mapping[str, float]
    spot: bool = False
    interrupted: bool = False  # taken back, or about to be when it ended

    @property
    def uptime_ms(self) -> int:
        return self.ended_ms - self.acquired_ms

    @property
    def registered_ms(self) -> int:
        return 0 if self.ready_ms is None else self.ended_ms - self.ready_ms


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Everything that was measured; averages are weighted as `simulation.md` says."""

    policy: str
    trace: str
    ended_ms: int
    rounds: int
    plans: int
    full_reconfigurations: int
    instances_launched: int
    migrations: int
    total_cost_micros: int
    jobs: tuple[JobRow, ...]
    instances: tuple[InstanceRow, ...]
    journal_hash: str = ""

    @property
    def jobs_finished(self) -> int:
        return sum(row.state == "finished" for row in self.jobs)

    @property
    def interruptions(self) -> int:
        """Instances on spot that the cloud wanted back while they were in use."""
        return sum(row.interrupted for row in self.instances)

    @property
    def spot_hours(self) -> float:
        """The time for which instances on spot were paid for."""
        return sum(row.uptime_ms for row in self.instances if row.spot) / MS_PER_HOUR

    @property
    def jct_hours(self) -> tuple[float, ...]:
        """Sorted, of the jobs that finished."""
        finished = (row.jct_ms for row in self.jobs if row.state == "finished")
        return tuple(sorted(ms / MS_PER_HOUR for ms in finished))

    @property
    def mean_jct_hours(self) -> float:
        return _mean(self.jct_hours)

    @property
    def mean_idle_hours(self) -> float:
        finished = [row.idle_ms / MS_PER_HOUR for row in self.jobs if row.state == "finished"]
        return _mean(finished)

    @property
    def tasks_per_instance(self) -> float:
        return _ratio(self._sum("task_ms"), self._sum("registered_ms"))

    @property
    def normalized_throughput(self) -> float:
        return _ratio(self._sum("speed_ms"), self._sum("running_ms"))

    @property
    def migrations_per_job(self) -> float:
        return _mean([row.migrations for row in self.jobs])

    @property
    def allocation(self) -> tuple[float, float, float]:
        """GPU, CPU and memory used, over what the registered instances had."""
        shares = []
        for index in range(3):
            used = sum(row.used_ms[index] for row in self.instances)
            had = sum(row.capacity[index] * row.registered_ms for row in self.instances)
            shares.append(_ratio(used, had))
        return shares[0], shares[1], shares[2]

    @property
    def spent_micros(self) -> dict[str, float]:
        """Where the money went, by category."""
        spent: dict[str, float] = {}
        for row in self.instances:
            for category, ms in row.spent_ms.items():
                micros = ms * row.hourly_micros / MS_PER_HOUR
                spent[category] = spent.get(category, 0.0) + micros
        return spent

    def _sum(self, name: str) -> float:
        return float(sum(getattr(row, name) for row in self.instances))


def _mean(values: tuple[float, ...] | list[float] | list[int]) -> float:
    return sum(values) / len(values) if values else 0.0


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
