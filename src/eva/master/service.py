"""The master put together: started, kept going, stopped.

Starting is recovering: take the lease, remember everything from the journal, compare with what the
cloud lists and what workers say when they come back. There is no other way to start, so the way
back from a crash is tried every day.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from eva.control import commands as cmd
from eva.control.events import Event, JobCancelled, PlanFailed, RoundDue
from eva.control.state import State
from eva.master import memory as remembering
from eva.master.clock import SteadyClock
from eva.master.crew import Crew, Orders
from eva.master.history import History
from eva.master.logs import LogKeeper
from eva.master.measured import Measured
from eva.master.memory import Memory
from eva.master.planner import Planner
from eva.master.pricing import Priced, Pricing
from eva.master.rental import Rental
from eva.master.secrets import Vault
from eva.master.settings import MasterSettings
from eva.master.submission import KEYS, JobDesk
from eva.master.tokens import Tokens
from eva.master.writer import Writer
from eva.model.catalog import Catalog
from eva.model.errors import EvaError, TryAgainError
from eva.model.ids import JobId
from eva.model.units import MS_PER_SECOND
from eva.ports.cloud import Cloud
from eva.ports.journal import Fact, Journal, Lease, LeaseHeldError
from eva.ports.storage import Storage
from eva.ports.workers import Workers

_MEASURED = "measured"
_REPEAT_S = 5.0

_log = structlog.get_logger("eva.master")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a master is given. `home` is its folder on this machine."""

    catalog: Catalog
    journal: Journal
    cloud: Cloud
    workers: Workers
    storage: Storage
    home: Path
    priced: Priced | None = None  # None: the catalog's prices, for good


@dataclass(slots=True, eq=False)
class Master:
    """Made by `start`; `failure` resolves when it cannot go on."""

    settings: MasterSettings
    around: Surroundings
    clock: SteadyClock
    lease: Lease
    memory: Memory
    history: History
    planner: Planner
    writer: Writer
    crew: Crew
    rental: Rental
    pricing: Pricing
    logs: LogKeeper
    desk: JobDesk
    tokens: Tokens
    measured: Measured
    closing: bool = False
    _snapshot_seq: int = 0
    _tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    @classmethod
    async def start(
        cls,
        settings: MasterSettings,
        around: Surroundings,
        lease: Lease,
        clock: SteadyClock | None = None,
    ) -> Master:
        """Remember, and begin. The lease is from `take_lease`."""
        master = await asyncio.to_thread(
            cls._assemble, settings, around, clock or SteadyClock(), lease
        )
        await master.begin()
        return master

    @classmethod
    def _assemble(
        cls, settings: MasterSettings, around: Surroundings, clock: SteadyClock, lease: Lease
    ) -> Master:
        journal, history = around.journal, History()
        memory = remembering.recall(journal, around.catalog, settings.controller, history.witness)
        clock.start_after(memory.state.now_ms)
        fact = journal.fact(_MEASURED)
        measured = Measured.load(None if fact is None else fact.value)
        vault = Vault.at(around.home)
        logs = LogKeeper(around.home / "logs", around.workers)
        writer = Writer(memory, journal, lease, clock, _Nowhere(), history.witness)
        crew = Crew(memory, around.workers, vault, logs, measured, clock, writer.post)
        bootstrap = around.workers.bootstrap
        rental = Rental(memory, around.cloud, settings, clock, bootstrap, writer.post, crew.forget)
        pricing = Pricing(
            memory, around.priced, writer.post, settings.prices_ms, settings.prices_again_ms
        )
        desk = JobDesk(memory, writer, vault, measured, settings.containers)
        tokens = Tokens(journal, lease, clock)
        tokens.load()
        desk.start()
        planner = Planner(settings.policy)
        return cls(
            settings, around, clock, lease, memory, history, planner, writer, crew, rental,
            pricing, logs, desk, tokens, measured, _snapshot_seq=memory.seq,
        )  # fmt: skip

    async def begin(self) -> None:
        """Act on what is remembered. `start` does this."""
        self.writer.carry_out = Hands(self)
        self._go(self.writer.run())
        self._go(self._keep_lease())
        if self.state.planning is not None:
            await self.writer.post(PlanFailed(self.state.planning, "the master was restarted"))
        await self.pricing.begin()
        self.crew.expect_everybody()
        await self.around.workers.serve(self.crew)
        self._go(self.rental.watch())
        self._go(self.rental.patrol())
        self._go(self.pricing.watch())
        self._go(self._rounds())
        self._go(self._look_after())
        _log.info("started", jobs=len(self.state.jobs), instances=len(self.state.instances))

    @property
    def state(self) -> State:
        return self.memory.state

    async def until_failure(self) -> None:
        """Returns never; raises what this master cannot go on with."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()

    async def abandon(self) -> None:
        """Let go of everything, as it is. Instances and tasks go on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.rental.close()
        await self.pricing.close()
        await self.logs.close()
        await self.around.workers.close()
        await self.around.cloud.close()
        self.planner.close()

    async def stop(self) -> None:
        """Finish what was said, let go, and leave all of it to be found by the next start."""
        await self.writer.drain()
        await self.abandon()
        with contextlib.suppress(EvaError):
            await asyncio.to_thread(self._save)
        await asyncio.to_thread(self.around.journal.release, self.lease)

    # What users do

    async def cancel(self, job: JobId) -> None:
        await self.writer.submit(JobCancelled(job), None, None)

    async def wind_up(self) -> None:
        """Cancel every job and wait until no instance is left to pay for."""
        self.closing = True
        for job in tuple(self.state.jobs):
            await self.cancel(job)
        while self.state.instances or self.state.jobs:
            await self.round()
            await asyncio.sleep(min(1.0, self.settings.poll_ms / MS_PER_SECOND))

    async def round(self) -> None:
        """One scheduling round now."""
        report = self.crew.report()
        if report is not None:
            self._post(report)
        await self.writer.post(RoundDue())

    # What goes on all the time

    def _go(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    def _post(self, event: Event) -> None:
        self.writer.post(event)

    async def _rounds(self) -> None:
        """At every multiple of the period, while there is anything to schedule."""
        period_ms = self.settings.round_ms
        while True:
            await asyncio.sleep((period_ms - self.clock() % period_ms) / MS_PER_SECOND)
            if self.state.jobs or self.state.instances:
                await self.round()

    async def _look_after(self) -> None:
        """Silent workers, unanswered orders, snapshots, old keys."""
        while True:
            await asyncio.sleep(min(_REPEAT_S, self.settings.poll_ms / MS_PER_SECOND))
            settings = self.settings
            for event in self.crew.overdue(settings.unreachable_ms, settings.setup_limit_ms):
                await self.writer.post(event)
            await self.crew.repeat()
            if self.memory.seq - self._snapshot_seq >= settings.snapshot_every:
                await self._take_snapshot()

    async def _take_snapshot(self) -> None:
        self.memory.forget_ended()
        snapshot = self.memory.snapshot()  # before any await: the state must stand still
        self._snapshot_seq = snapshot.seq
        try:
            await asyncio.to_thread(self.around.journal.save_snapshot, self.lease, snapshot)
            await asyncio.to_thread(self._tidy)
        except TryAgainError as error:
            _log.warning("no snapshot this time", reason=str(error))

    def _tidy(self) -> None:
        journal, now_ms = self.around.journal, self.clock()
        journal.forget_facts(self.lease, KEYS, now_ms - self.settings.keys_kept_ms)
        journal.put_fact(self.lease, Fact(_MEASURED, self.measured.dump(), now_ms))
        if self.settings.compact:
            journal.compact(self.lease)

    def _save(self) -> None:
        self.memory.forget_ended()
        self.around.journal.save_snapshot(self.lease, self.memory.snapshot())
        self._tidy()

    async def _keep_lease(self) -> None:
        lease, journal = self.lease, self.around.journal
        while True:
            await asyncio.sleep(lease.ttl_ms / 3 / MS_PER_SECOND)
            try:
                await asyncio.to_thread(journal.renew, lease)
            except TryAgainError as error:
                _log.warning("lease not renewed", reason=str(error))


class _Nowhere:
    """Before the start is over there is nobody to carry out anything."""

    def __call__(self, command: cmd.Command) -> None:
        raise AssertionError(f"{type(command).__name__} before the start is over")


class Hands:
    """Commands to those who carry them out, by kind."""

    def __init__(self, master: Master) -> None:
        self._master = master
        self._orders = Orders(master.crew)
        self._plans: set[asyncio.Task[None]] = set()

    def __call__(self, command: cmd.Command) -> None:
        match command:
            case cmd.ComputePlan():
                plan = asyncio.create_task(self._plan(command))
                self._plans.add(plan)
                plan.add_done_callback(self._plans.discard)
            case cmd.LaunchInstance(instance, kind):
                self._master.rental.launch(instance, kind)
            case cmd.TerminateInstance(instance):
                self._master.rental.terminate(instance)
            case _:
                self._orders(command)

    async def _plan(self, command: cmd.ComputePlan) -> None:
        self._master.writer.post(await self._master.planner.answer(command))


async def take_lease(journal: Journal, owner: str, ttl_ms: int) -> Lease:
    """Ours as soon as nobody else's: a second master stands by."""
    waiting = False
    while True:
        try:
            return await asyncio.to_thread(journal.acquire, owner, ttl_ms)
        except LeaseHeldError as error:
            if not waiting:
                _log.info("standing by", reason=str(error))
                waiting = True
            await asyncio.sleep(ttl_ms / 10 / MS_PER_SECOND)
