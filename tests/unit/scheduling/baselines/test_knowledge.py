"""Nobody sees an oracle that he did not declare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pytest

from eva.model.ids import JobId, Workload
from eva.model.oracle import Knowledge, Oracle, OracleNotGrantedError
from eva.model.snapshot import ClusterSnapshot
from eva.scheduling.baselines.no_packing import NoPacking
from eva.scheduling.baselines.owl import Owl
from eva.scheduling.baselines.stratus import Stratus
from eva.scheduling.baselines.synergy import Synergy
from eva.scheduling.policies import POLICY_NAMES, policy
from eva.scheduling.policy import SchedulingPolicy
from tests.support.small_cluster import MEDIUM, snapshot, spec, task

DECLARED = {
    "stratus": frozenset({Knowledge.REMAINING_TIME}),
    "owl": frozenset({Knowledge.PAIRWISE_PROFILE}),
}
BASELINES: tuple[SchedulingPolicy, ...] = (NoPacking(), Stratus(), Synergy(), Owl())
EVERY_POLICY = {one.name: one for one in (*map(policy, POLICY_NAMES), *BASELINES)}


@dataclass
class Watched(Mapping[JobId, int]):
    """Remaining times and a profile that remember being asked."""

    asked: set[Knowledge]

    def __getitem__(self, job: JobId) -> int:
        self.asked.add(Knowledge.REMAINING_TIME)
        return 3_600_000

    def __iter__(self) -> Iterator[JobId]:
        self.asked.add(Knowledge.REMAINING_TIME)
        return iter(())

    def __len__(self) -> int:
        self.asked.add(Knowledge.REMAINING_TIME)
        return 0

    def pair(self, one: Workload, other: Workload) -> float:
        self.asked.add(Knowledge.PAIRWISE_PROFILE)
        return 0.95


def crowd(oracle: Oracle) -> ClusterSnapshot:
    kinds = [spec(name, cpus=3) for name in "abc"]
    running = [task(f"r{n}", kinds[n], on="i1" if n < 2 else "i2") for n in range(3)]
    waiting = [task(f"w{n}", kinds[n]) for n in range(3)]
    return snapshot(*running, *waiting, present={"i1": MEDIUM, "i2": MEDIUM}, oracle=oracle)


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_a_policy_declares_what_it_is_given_and_asks_for_nothing_else(name: str) -> None:
    one, watched = EVERY_POLICY[name], Watched(set())
    assert one.knowledge == DECLARED.get(name, frozenset())
    one.plan(crowd(Oracle(watched, watched.pair)))  # everything within reach
    assert watched.asked == one.knowledge


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_what_is_declared_is_enough(name: str) -> None:
    one, watched = EVERY_POLICY[name], Watched(set())
    assert one.plan(crowd(Oracle(watched, watched.pair)).granting(one.knowledge)).instances


@dataclass(frozen=True)
class Peeking:
    """Any policy, with a look at the oracle before it plans."""

    inner: SchedulingPolicy
    look: Callable[[Oracle], object]

    def plan(self, seen: ClusterSnapshot) -> None:
        self.look(seen.oracle)
        self.inner.plan(seen)


LOOKS: dict[Knowledge, Callable[[Oracle], object]] = {
    Knowledge.REMAINING_TIME: lambda oracle: oracle.remaining_ms(JobId("r0")),
    Knowledge.PAIRWISE_PROFILE: lambda oracle: oracle.pair(Workload("a"), Workload("b")),
}


@pytest.mark.parametrize("knowledge", LOOKS)
@pytest.mark.parametrize("name", EVERY_POLICY)
def test_touching_what_is_not_declared_fails_loudly(name: str, knowledge: Knowledge) -> None:
    one, watched = EVERY_POLICY[name], Watched(set())
    granted = crowd(Oracle(watched, watched.pair)).granting(one.knowledge)
    peeking = Peeking(one, LOOKS[knowledge])
    if knowledge in one.knowledge:
        peeking.plan(granted)
    else:
        with pytest.raises(OracleNotGrantedError, match="must declare it"):
            peeking.plan(granted)


@pytest.mark.parametrize("name", DECLARED)
def test_without_what_it_declares_a_policy_says_so(name: str) -> None:
    with pytest.raises(OracleNotGrantedError):
        EVERY_POLICY[name].plan(replace(crowd(Oracle()), oracle=Oracle()))
