"""What the ThroughputMonitor gets to see: iterations per second, only where they changed.

With noise, every sample is multiplied by a factor drawn around 1, so every sample changes.
"""

from __future__ import annotations

from random import Random

from eva.control.events import ThroughputReported, ThroughputSample
from eva.model.ids import JobId, TaskId
from eva.simulator.world import Phase, World, WorldJob

LOWEST_FACTOR = 0.01


class Observation:
    def __init__(self, world: World, noise: float, seed: int) -> None:
        self._world = world
        self._noise = noise
        self._random = Random(f"noise {seed}")  # noqa: S311  # chance, not secrets
        self._changed: dict[JobId, WorldJob] = {}
        self._sent: dict[TaskId, tuple[int, float]] = {}

    def pace_changed(self, job: WorldJob) -> None:
        if job.trace.reports_throughput:
            self._changed[job.id] = job

    def report(self) -> ThroughputReported | None:
        """The samples since the last report, or None where there are none."""
        jobs = self._world.jobs if self._noise > 0 else self._changed
        samples = [
            sample
            for job in jobs.values()
            if job.trace.reports_throughput
            for sample in self._samples(job)
        ]
        self._changed.clear()
        return ThroughputReported(tuple(samples)) if samples else None

    def forget(self, job: WorldJob, tasks: list[TaskId]) -> None:
        self._changed.pop(job.id, None)
        for task in tasks:
            self._sent.pop(task, None)

    def _samples(self, job: WorldJob) -> list[ThroughputSample]:
        samples = []
        for copy in job.copies.values():
            if copy.phase is not Phase.RUNNING:
                continue
            now = job.rate * job.trace.throughput_per_s * self._factor(job)
            epoch, before = self._sent.get(copy.task, (0, 0.0))
            if now != (before if epoch == copy.epoch else 0.0):
                self._sent[copy.task] = (copy.epoch, now)
                samples.append(ThroughputSample(copy.task, copy.epoch, now))
        return samples

    def _factor(self, job: WorldJob) -> float:
        if self._noise <= 0 or job.rate <= 0:
            return 1.0
        return max(LOWEST_FACTOR, self._random.gauss(1.0, self._noise))
