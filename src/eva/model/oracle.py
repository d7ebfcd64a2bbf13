"""Knowledge that no real scheduler has, and that some published baselines are given.

Stratus is told how long each job still runs; Owl is told how every pair of workloads interferes.
A policy declares what it is given, the controller hands out exactly that, and asking for anything
else is an error: no policy can benefit from an oracle unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from eva.model.errors import InvariantError
from eva.model.ids import JobId, Workload


class Knowledge(Enum):
    REMAINING_TIME = "remaining run time of every job at full throughput"
    PAIRWISE_PROFILE = "true pairwise co-location throughput of every two workloads"


class OracleNotGrantedError(InvariantError):
    """A policy reached for knowledge that it does not declare."""

    def __init__(self, knowledge: Knowledge) -> None:
        super().__init__(f"this policy is not given the {knowledge.value}; it must declare it")


@dataclass(frozen=True, slots=True)
class Oracle:
    """What is known to the driver; `granted` cuts it down to what a policy declares."""

    remaining: Mapping[JobId, int] | None = None
    profile: Callable[[Workload, Workload], float] | None = None

    def granted(self, knowledge: Iterable[Knowledge]) -> Oracle:
        kinds = frozenset(knowledge)
        return Oracle(
            self.remaining if Knowledge.REMAINING_TIME in kinds else None,
            self.profile if Knowledge.PAIRWISE_PROFILE in kinds else None,
        )

    def remaining_ms(self, job: JobId) -> int:
        if self.remaining is None:
            raise OracleNotGrantedError(Knowledge.REMAINING_TIME)
        return self.remaining[job]

    def pair(self, workload: Workload, neighbour: Workload) -> float:
        if self.profile is None:
            raise OracleNotGrantedError(Knowledge.PAIRWISE_PROFILE)
        return self.profile(workload, neighbour)


NO_ORACLE = Oracle()
