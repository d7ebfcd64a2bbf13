"""How fast jobs advance. Nothing is ticked: paces change only when someone starts or stops.

A copy's speed is the product of the ground truth over the running copies beside it; a job advances
at the speed of its slowest copy, once all of them run and have initialised. From a pace and what
is left follows when the job completes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from eva.simulator.observation import Observation
from eva.simulator.recorder import touch
from eva.simulator.timeline import Timeline
from eva.simulator.world import Copy, Phase, WorldInstance, WorldJob
from eva.traces.interference import Interference

EPSILON_MS = 1e-6  # rounding left over from adding up many paces


class Progress:
    def __init__(
        self,
        timeline: Timeline,
        interference: Interference,
        observation: Observation,
        complete: Callable[[WorldJob], None],
        scale: Callable[[int], int],
    ) -> None:
        self._timeline = timeline
        self._interference = interference
        self._observation = observation
        self._complete = complete
        self._scale = scale
        self._speeds: dict[tuple[str, tuple[str, ...]], float] = {}

    def copy_runs(self, copy: Copy) -> None:
        """The copy's phase has just become running."""
        self._refresh(copy.instance)
        job = copy.job
        if self._all_run(job):
            self._set_running(job)
            self._await_init(job)

    def copy_halts(self, copy: Copy) -> None:
        """The copy does not run any more (its phase says so, or it is removed)."""
        self.halt(copy.job)
        self._refresh(copy.instance)

    def halt(self, job: WorldJob) -> None:
        """The job makes no progress until all of its copies run again."""
        self._touch(job)
        job.progressing = False
        if job.running_since_ms is not None:
            job.ran_ms += self._timeline.now_ms - job.running_since_ms
            job.running_since_ms = None
        self._set_pace(job, 0.0)

    def remaining_ms(self, job: WorldJob) -> float:
        return max(0.0, job.remaining_ms - job.rate * (self._timeline.now_ms - job.since_ms))

    def _all_run(self, job: WorldJob) -> bool:
        running = sum(copy.phase is Phase.RUNNING for copy in job.copies.values())
        return running > 0 and running + len(job.done) == len(job.trace.phases)

    def _set_running(self, job: WorldJob) -> None:
        if job.running_since_ms is None:
            job.running_since_ms = self._timeline.now_ms

    def _await_init(self, job: WorldJob) -> None:
        job.version += 1
        version = job.version

        def initialised() -> None:
            if job.version != version:
                return
            self._touch(job)
            if job.rolled_back:
                job.remaining_ms, job.rolled_back = job.saved_ms, False
            job.saved_ms = job.remaining_ms
            job.progressing = True
            self._set_pace(job, self._pace(job))

        self._timeline.after(self._scale(job.trace.init_ms), initialised)

    def _refresh(self, instance: WorldInstance) -> None:
        """Recompute the speed of every running copy here, and the paces that follow."""
        running = [copy for copy in instance.copies.values() if copy.phase is Phase.RUNNING]
        crowd: list[str] = sorted(copy.spec.workload for copy in running)
        for copy in running:
            speed = self._speed(copy.spec.workload, crowd)
            if speed == copy.speed:
                continue
            copy.speed = speed
            job = copy.job
            if job.progressing:
                pace = self._pace(job)
                if pace != job.rate:
                    self._touch(job)
                    self._set_pace(job, pace)

    def _speed(self, workload: str, crowd: list[str]) -> float:
        beside = list(crowd)
        beside.remove(workload)
        key = (workload, tuple(beside))
        try:
            return self._speeds[key]
        except KeyError:
            product = math.prod(self._interference.pair(workload, other) for other in beside)
            self._speeds[key] = product
            return product

    def _pace(self, job: WorldJob) -> float:
        return min(copy.speed for copy in job.copies.values())

    def _touch(self, job: WorldJob) -> None:
        for copy in job.copies.values():
            touch(copy.instance, self._timeline.now_ms)

    def _set_pace(self, job: WorldJob, pace: float) -> None:
        """Take stock at the old pace, go on at the new one."""
        job.remaining_ms = self.remaining_ms(job)
        job.since_ms = self._timeline.now_ms
        job.version += 1
        if pace != job.rate:
            job.rate = pace
            self._observation.pace_changed(job)
        if job.progressing and pace > 0:
            version = job.version

            def completed() -> None:
                if job.version == version:
                    job.remaining_ms = 0.0
                    self._complete(job)

            left = math.ceil(max(0.0, job.remaining_ms - EPSILON_MS) / pace)
            self._timeline.after(left, completed)
