"""Policies in a process of their own: a plan may take seconds, and a solver may crash.

The catalog goes there only when it is another than before, because prices are worked out once per
catalog and remembered under it. A process that dies is an answer too: `PlanFailed`, and the next
round gets a new process.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace

from eva.control.commands import ComputePlan
from eva.control.events import PlanComputed, PlanFailed
from eva.model.catalog import Catalog, InstanceType
from eva.model.errors import EvaError
from eva.model.plan import ClusterPlan, PlannedInstance
from eva.model.snapshot import ClusterSnapshot
from eva.scheduling.policies import policy
from eva.scheduling.policy import SchedulingPolicy

_SAME_CATALOG = Catalog("as before", ())
_ORPHAN_CHECK_S = 1.0


@dataclass(slots=True)
class Planner:
    """One process, made when first asked."""

    policy: str
    _pool: ProcessPoolExecutor | None = field(default=None, init=False)
    _sent: Catalog | None = field(default=None, init=False)  # that the process has

    async def answer(self, command: ComputePlan) -> PlanComputed | PlanFailed:
        try:
            return PlanComputed(command.round, await self.plan(command.snapshot))
        except BrokenProcessPool:
            self._discard()
            return PlanFailed(command.round, "the planning process died")
        except EvaError as error:
            return PlanFailed(command.round, str(error))

    async def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
        """The policy's plan for any snapshot, also for asking what would be."""
        pool = self._pool or self._make()
        loop = asyncio.get_running_loop()
        catalog = None if self._sent is snapshot.catalog else snapshot.catalog
        self._sent = snapshot.catalog
        sent = replace(snapshot, catalog=_SAME_CATALOG)
        plan = await loop.run_in_executor(pool, _plan_there, sent, catalog)
        return replace(plan, instances=_with_own_types(plan, snapshot))

    def close(self) -> None:
        self._discard()

    def _make(self) -> ProcessPoolExecutor:
        self._pool = ProcessPoolExecutor(
            max_workers=1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_prepare_process,
            initargs=(self.policy, os.getpid()),
        )
        return self._pool

    def _discard(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = self._sent = None


def _with_own_types(plan: ClusterPlan, snapshot: ClusterSnapshot) -> tuple[PlannedInstance, ...]:
    """Instance types came back as copies; what everything refers to is what was sent.

    A present instance may be of a type that is not offered any more, or at another price.
    """
    present = {view.id: view.type for view in snapshot.instances}
    offered = {kind.name: kind for kind in snapshot.catalog}

    def own(planned: PlannedInstance) -> InstanceType:
        if planned.instance is not None:
            return present.get(planned.instance, planned.type)
        return offered.get(planned.type.name, planned.type)

    return tuple(replace(planned, type=own(planned)) for planned in plan.instances)


@dataclass(slots=True)
class _There:
    """What the process has: one policy for its life, one catalog at a time."""

    policy: SchedulingPolicy
    catalog: Catalog


_there: _There | None = None


def _prepare_process(name: str, master: int) -> None:
    global _there  # noqa: PLW0603  the process has one policy for its life
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the master's to answer
    threading.Thread(target=_die_with, args=(master,), daemon=True).start()
    _there = _There(policy(name), _SAME_CATALOG)


def _plan_there(snapshot: ClusterSnapshot, catalog: Catalog | None) -> ClusterPlan:
    if _there is None:
        raise BrokenProcessPool("the planning process was not prepared")
    if catalog is not None:
        _there.catalog = catalog
    chosen = _there.policy
    return chosen.plan(replace(snapshot, catalog=_there.catalog).granting(chosen.knowledge))


def _die_with(master: int) -> None:
    """A master that was killed cannot end this process, so it looks for itself."""
    while os.getppid() == master:
        time.sleep(_ORPHAN_CHECK_S)
    os._exit(0)
