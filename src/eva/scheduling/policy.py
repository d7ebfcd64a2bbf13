"""What every scheduler is: a name, the oracle knowledge it declares, and a pure function."""

from __future__ import annotations

from typing import Protocol

from eva.model.oracle import Knowledge
from eva.model.plan import ClusterPlan
from eva.model.snapshot import ClusterSnapshot


class SchedulingPolicy(Protocol):
    """`plan` depends on nothing but its argument, so it may run in any process at any time."""

    @property
    def name(self) -> str: ...

    @property
    def knowledge(self) -> frozenset[Knowledge]:
        """The oracle knowledge that this policy is given; empty for anything deployable."""
        ...

    def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan: ...
