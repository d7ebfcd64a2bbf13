"""How long checkpoints and starts really took, by workload: what later jobs are weighed with.

A job's own delays are part of its specification, which never changes once it is accepted, so a
measurement counts from the next submission of the same workload on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from eva.control.state import State
from eva.model.ids import Workload
from eva.model.jobs import TaskDelays
from eva.ports.workers import Checkpointed, Report, Started

_NEW_SHARE = 0.5  # of the newest measurement in the running average


@dataclass(slots=True)
class Measured:
    checkpoint_ms: dict[Workload, int] = field(default_factory=dict)
    launch_ms: dict[Workload, int] = field(default_factory=dict)

    def of(self, workload: Workload) -> TaskDelays:
        """What is known; nothing is assumed for what was never seen."""
        return TaskDelays(self.checkpoint_ms.get(workload, 0), self.launch_ms.get(workload, 0))

    def reported(self, state: State, report: Report) -> None:
        task = state.tasks.get(getattr(report, "task", None))  # type: ignore[arg-type]  # a spot notice names none
        if task is None:
            return
        if isinstance(report, Started) and report.launch_ms > 0:
            _average(self.launch_ms, task.spec.workload, report.launch_ms)
        elif isinstance(report, Checkpointed) and report.checkpoint_ms > 0:
            _average(self.checkpoint_ms, task.spec.workload, report.checkpoint_ms)

    def dump(self) -> bytes:
        return json.dumps([self.checkpoint_ms, self.launch_ms]).encode()

    @classmethod
    def load(cls, raw: bytes | None) -> Measured:
        checkpoint, launch = json.loads(raw) if raw else ({}, {})
        return cls(checkpoint, launch)


def _average(known: dict[Workload, int], workload: Workload, measured_ms: int) -> None:
    before = known.get(workload, measured_ms)
    known[workload] = round(before + _NEW_SHARE * (measured_ms - before))
