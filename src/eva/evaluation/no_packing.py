"""What No-Packing costs, in closed form.

Nobody shares, nobody moves and nobody waits, so a bill can be written down without simulating: a
task's instance is launched at the first round after the arrival and given back at the first round
after the job's end. With fixed or scaled delays this is the simulated cost to the micro-dollar;
where delays are sampled, it is the cost at their mean.
"""

from __future__ import annotations

import math

from eva.model.catalog import Catalog, InstanceType
from eva.model.jobs import TaskSpec
from eva.model.units import MS_PER_SECOND, cost_micros
from eva.scheduling.reservation_price import price_book
from eva.simulator.settings import SimulationSettings
from eva.traces.trace import TaskPhases, Trace, TraceJob


def no_packing_micros(trace: Trace, catalog: Catalog, settings: SimulationSettings) -> int:
    alone = _Alone(catalog, settings)
    return sum(alone.cost_micros(job) for job in trace.jobs)


class _Alone:
    def __init__(self, catalog: Catalog, settings: SimulationSettings) -> None:
        self._book = price_book(catalog)
        self._round_ms = settings.round_ms
        delays = settings.delays
        mean = 1.0 if delays.jitter is None else sum(delays.jitter) / 2
        self._task_scale = delays.task_scale * mean
        self._instance_scale = delays.instance_scale * mean

    def cost_micros(self, job: TraceJob) -> int:
        launched_ms = self._round_after(job.arrival_ms)
        kinds = [self._host(spec) for spec in job.spec.tasks]
        acquired_ms = [launched_ms + self._instance(kind.delays.acquire_ms) for kind in kinds]
        running_ms = max(
            at_ms + self._setup_ms(kind) + self._staging_ms(phases)
            for at_ms, kind, phases in zip(acquired_ms, kinds, job.phases, strict=True)
        )
        work_ms = math.ceil(job.total_iterations / job.throughput_per_s * MS_PER_SECOND - 1e-6)
        ended_ms = self._round_after(running_ms + self._task(job.init_ms) + work_ms)
        return sum(
            cost_micros(
                kind.hourly_micros,
                ended_ms + self._instance(kind.delays.terminate_ms) - at_ms,
            )
            for at_ms, kind in zip(acquired_ms, kinds, strict=True)
        )

    def _host(self, spec: TaskSpec) -> InstanceType:
        price = self._book.price(spec)
        if price is None:
            raise ValueError(f"no instance type holds {spec}")  # traces are read against a catalog
        return price.type

    def _setup_ms(self, kind: InstanceType) -> int:
        delays = kind.delays
        return self._instance(delays.start_worker_ms) + self._instance(delays.register_worker_ms)

    def _staging_ms(self, phases: TaskPhases) -> int:
        return self._task(phases.fetch_ms) + self._task(phases.build_ms)

    def _task(self, delay_ms: int) -> int:
        return round(delay_ms * self._task_scale)

    def _instance(self, delay_ms: int) -> int:
        return round(delay_ms * self._instance_scale)

    def _round_after(self, time_ms: int) -> int:
        return -(-time_ms // self._round_ms) * self._round_ms
