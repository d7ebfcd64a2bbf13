"""One policy's run as figures: what `eva simulate --json` prints and experiments keep.

Definitions. *Tasks per instance*, *allocation* and *normalized throughput* are averages over time,
weighted by the registered life of instances (throughput: by the running time of tasks). *JCT* is
end minus arrival, *idle* is JCT minus the time in which all tasks of the job ran. *Migrations*
count jobs that were stopped and started elsewhere; per task, each task of a stopped job counts.

Where the money went: every millisecond of every instance's bill falls into exactly one of the six
parts of `SPENT`, so they add up to the total. A task's part of its instance is the largest share
that it takes of any resource; parts that add up to more than the whole are scaled down to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eva.evaluation.references import References
from eva.model.units import MICROS_PER_USD, MS_PER_HOUR
from eva.simulator.result import SimulationResult

SPENT: Mapping[str, str] = {
    "work": "tasks at the speed they really had",
    "interference": "speed lost to neighbours",
    "overhead": "tasks starting, initialising, waiting for siblings, or being stopped",
    "fragments": "room on occupied instances that no task used",
    "setup": "instances on which no task has come yet",
    "draining": "instances that all tasks have left, until the bill ends",
}
_DECILES = tuple(share / 20 for share in range(21))


@dataclass(frozen=True, slots=True)
class Report:
    """A result beside its references. `cpu_s` is the processor time that the run took."""

    result: SimulationResult
    references: References
    cpu_s: float

    @property
    def total_usd(self) -> float:
        return self.result.total_cost_micros / MICROS_PER_USD

    def relative_to(self, micros: int | None) -> float | None:
        return self.result.total_cost_micros / micros if micros else None

    @property
    def full_share(self) -> float:
        """Of the rounds in which a plan was made, how many adopted full reconfiguration."""
        return _ratio(self.result.full_reconfigurations, self.result.plans)

    @property
    def migrations_per_task(self) -> float:
        tasks = sum(row.tasks for row in self.result.jobs)
        return _ratio(sum(row.migrations * row.tasks for row in self.result.jobs), tasks)

    @property
    def uptime_hours(self) -> tuple[float, ...]:
        """Sorted, of every instance that was paid for."""
        return tuple(sorted(row.uptime_ms / MS_PER_HOUR for row in self.result.instances))

    @property
    def spent_usd(self) -> dict[str, float]:
        spent = self.result.spent_micros
        return {part: spent.get(part, 0.0) / MICROS_PER_USD for part in SPENT}

    def as_json(self) -> dict[str, Any]:
        result, references = self.result, self.references
        jct, uptimes = result.jct_hours, self.uptime_hours
        gpu, cpu, memory = result.allocation
        return {
            "policy": result.policy,
            "trace": result.trace,
            "total_cost_usd": self.total_usd,
            "no_packing_cost_usd": _usd(references.no_packing_micros),
            "relative_to_no_packing": self.relative_to(references.no_packing_micros),
            "lower_bound_usd": _usd(references.lower_bound_micros),
            "lower_bound_with_interference_usd": _usd(references.slowed_bound_micros),
            "practical_floor_usd": _usd(references.floor_micros),
            "instances_launched": result.instances_launched,
            "spot_hours": result.spot_hours,
            "interruptions": result.interruptions,
            "tasks_per_instance": result.tasks_per_instance,
            "migrations": result.migrations,
            "migrations_per_job": result.migrations_per_job,
            "migrations_per_task": self.migrations_per_task,
            "allocation": {"gpu": gpu, "cpu": cpu, "memory": memory},
            "normalized_throughput": result.normalized_throughput,
            "jct_hours": {
                "mean": result.mean_jct_hours,
                "p50": quantile(jct, 0.5),
                "p95": quantile(jct, 0.95),
            },
            "idle_hours": {"mean": result.mean_idle_hours},
            "rounds": result.rounds,
            "plans": result.plans,
            "full_reconfigurations": result.full_reconfigurations,
            "full_reconfiguration_share": self.full_share,
            "jobs": len(result.jobs),
            "jobs_finished": result.jobs_finished,
            "spent_usd": self.spent_usd,
            "uptime_hours": [
                {"share": share, "hours": quantile(uptimes, share)} for share in _DECILES
            ],
            "simulated_hours": result.ended_ms / MS_PER_HOUR,
            "cpu_s": self.cpu_s,
        }


def quantile(ordered: Sequence[float], share: float) -> float:
    """Linear between the two nearest values; 0 where there are none."""
    if not ordered:
        return 0.0
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def _usd(micros: int | None) -> float | None:
    return None if micros is None else micros / MICROS_PER_USD


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
