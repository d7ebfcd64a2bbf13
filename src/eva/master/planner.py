"""Policies in a process of their own: a plan may take seconds, and a solver may crash.

The catalog goes there once, with the process, because prices are worked out once per catalog and
remembered under it. A process that dies is an answer too: `PlanFailed`, and the next round gets a
new process.
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
from eva.model.catalog import Catalog
from eva.model.errors import EvaError
from eva.model.plan import ClusterPlan, PlannedInstance
from eva.model.snapshot import ClusterSnapshot
from eva.scheduling.policies import policy
from eva.scheduling.policy import SchedulingPolicy

_NO_CATALOG = Catalog("sent with the process", ())
_ORPHAN_CHECK_S = 1.0


@dataclass(slots=True)
class Planner:
    """One process, made when first asked."""

    policy: str
    catalog: Catalog
    _pool: ProcessPoolExecutor | None = field(default=None, init=False)

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
        sent = replace(snapshot, catalog=_NO_CATALOG)
        plan = await loop.run_in_executor(pool, _plan_there, sent)
        return replace(plan, instances=tuple(map(self._with_own_type, plan.instances)))

    def close(self) -> None:
        self._discard()

    def _make(self) -> ProcessPoolExecutor:
        self._pool = ProcessPoolExecutor(
            max_workers=1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_prepare_process,
            initargs=(self.policy, self.catalog, os.getpid()),
        )
        return self._pool

    def _discard(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _with_own_type(self, planned: PlannedInstance) -> PlannedInstance:
        """Instance types came back as copies; the catalog's own are what everything refers to."""
        own = self.catalog.get(planned.type.name)
        return planned if own is None else replace(planned, type=own)


_there: tuple[SchedulingPolicy, Catalog] | None = None


def _prepare_process(name: str, catalog: Catalog, master: int) -> None:
    global _there  # noqa: PLW0603  the process has one policy for its life
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the master's to answer
    threading.Thread(target=_die_with, args=(master,), daemon=True).start()
    _there = policy(name), catalog


def _plan_there(snapshot: ClusterSnapshot) -> ClusterPlan:
    if _there is None:
        raise BrokenProcessPool("the planning process was not prepared")
    chosen, catalog = _there
    return chosen.plan(replace(snapshot, catalog=catalog).granting(chosen.knowledge))


def _die_with(master: int) -> None:
    """A master that was killed cannot end this process, so it looks for itself."""
    while os.getppid() == master:
        time.sleep(_ORPHAN_CHECK_S)
    os._exit(0)
