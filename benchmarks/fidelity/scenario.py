"""What is run: a trace, how fast time goes, and how far the two bills may differ."""

from __future__ import annotations

from dataclasses import dataclass

from eva.inputs import catalogs
from eva.master.options import with_delays_scaled
from eva.model.catalog import Catalog
from eva.model.units import MS_PER_SECOND
from eva.simulator.settings import ROUND_MS
from eva.traces.sampled import SMALL_PHYSICAL, Sampling, sampled_trace
from eva.traces.trace import Trace, TraceJob

PACE = 50.0  # steps per live second of every task that runs alone
LONGEST_WINDOW_S = 3  # over which workers measure throughput


@dataclass(frozen=True, slots=True)
class Scenario:
    """One second here is `scale` seconds of the trace. Prices stay: time alone is scaled."""

    name: str
    sampling: Sampling
    scale: float
    tolerance: float
    seed: int = 0
    catalog_name: str = "paper"

    @property
    def trace(self) -> Trace:
        """As drawn, in the time of the trace."""
        return sampled_trace(self.name, self.sampling, self.seed)

    @property
    def catalog(self) -> Catalog:
        """In live time, as the live cluster plans with it."""
        return with_delays_scaled(catalogs.load(self.catalog_name), 1 / self.scale)

    @property
    def round_ms(self) -> int:
        return round(ROUND_MS / self.scale)

    def live_ms(self, trace_ms: int) -> int:
        return round(trace_ms / self.scale)

    def steps(self, job: TraceJob) -> float:
        """The job's work: its duration when nothing slows it."""
        return self.live_ms(job.duration_ms) / MS_PER_SECOND * PACE

    def trace_hours(self, live_ms: float) -> float:
        return live_ms * self.scale / 3_600_000

    def dollars(self, live_micros: float) -> float:
        """What the same uptime costs in the time of the trace."""
        return live_micros * self.scale / 1_000_000


FULL = Scenario("32 jobs", SMALL_PHYSICAL, scale=240.0, tolerance=0.05)
# Few jobs, but packed, migrated and in gangs: with this seed Eva does all of it. A bill of so few
# moves further with one late migration, hence the wider tolerance.
QUICK = Scenario(
    "8 jobs",
    Sampling(8, shortest_ms=1_800_000, longest_ms=3_600_000, mean_interarrival_ms=120_000),
    scale=240.0,
    tolerance=0.15,
    seed=6,
)
