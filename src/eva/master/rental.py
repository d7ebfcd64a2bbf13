"""The cloud's side of the master: launches and terminations, repeated until the cloud shows them.

Every call names our own id of the instance, so asking twice never rents two. What became of it is
read off the cloud's list, which alone is proof that an instance is gone. What the cloud has and no
plan knows of is reaped, whoever crashed in between: by the cloud's own rule (`Cloud.reap`), for it
knows best which instances are ours, how old they are, and whether an intent got two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

import structlog

from eva.control.events import (
    Event,
    InstanceAcquired,
    InstanceLost,
    InstanceTerminated,
    LaunchRefused,
)
from eva.control.lifecycle import InstanceState
from eva.control.state import Instance
from eva.master.clock import Clock
from eva.master.memory import Memory
from eva.master.settings import MasterSettings
from eva.model.catalog import InstanceType
from eva.model.errors import CapacityError, EvaError, TryAgainError
from eva.model.ids import InstanceId
from eva.model.units import MS_PER_SECOND
from eva.ports.cloud import (
    Cloud,
    CloudInstance,
    CloudState,
    InstanceNotFoundError,
    LaunchIntent,
    UnsupportedTypeError,
)

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0
_HASTE = 10  # how much sooner than usual it is looked again where something was asked for

_log = structlog.get_logger("eva.cloud")


@dataclass(slots=True)
class Rental:
    memory: Memory
    cloud: Cloud
    settings: MasterSettings
    clock: Clock
    bootstrap: Callable[[InstanceId], str]
    post: Callable[[Event], Awaitable[object]]
    forget: Callable[[InstanceId], None]
    _at_work: dict[InstanceId, asyncio.Task[None]] = field(default_factory=dict)
    _missing_since: dict[InstanceId, int] = field(default_factory=dict)
    _asked: set[InstanceId] = field(default_factory=set)  # by this process
    _look_again: asyncio.Event = field(default_factory=asyncio.Event)

    # Commands

    def launch(self, name: InstanceId, kind: InstanceType) -> None:
        self._asked.add(name)
        self._work(name, self._launch(name, kind))

    def terminate(self, name: InstanceId) -> None:
        """After whatever is under way for this instance."""
        self._work(name, self._terminate(name, self._at_work.get(name)))

    # Watching

    async def watch(self) -> None:
        """Compare the cloud with the state, for ever; at once when something was asked of it."""
        while True:
            self._look_again.clear()
            try:
                await self.compare()
            except TryAgainError as error:
                _log.warning("the cloud does not answer", reason=str(error))
            try:
                await asyncio.wait_for(
                    self._look_again.wait(), self.settings.poll_ms / MS_PER_SECOND
                )
            except TimeoutError:
                continue
            await asyncio.sleep(self.settings.poll_ms / _HASTE / MS_PER_SECOND)

    async def patrol(self) -> None:
        """Have what nobody knows of ended, for ever."""
        while True:
            try:
                for found in await self.cloud.reap(self._known):
                    _log.warning(
                        "reaping",
                        ref=found.ref,
                        intent=found.instance,
                        reason=found.reason,
                        failed=found.failed,
                    )
            except TryAgainError as error:
                _log.warning("the cloud does not answer", reason=str(error))
            await asyncio.sleep(self.settings.reap_ms / MS_PER_SECOND)

    def _known(self) -> Collection[InstanceId]:
        """Every intent that is not over: the state is what the journal says, to the last record."""
        return self.memory.state.instances.keys()

    async def compare(self) -> None:
        listed = {each.instance: each for each in await self.cloud.list()}
        for instance in tuple(self.memory.state.instances.values()):
            shown = listed.get(instance.id)
            if shown is None:
                await self._not_listed(instance)
            else:
                self._missing_since.pop(instance.id, None)
                await self._listed(instance, shown)

    async def close(self) -> None:
        tasks = list(self._at_work.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Details

    async def _listed(self, instance: Instance, shown: CloudInstance) -> None:
        account = self.memory.state.ledger.open.get(instance.id)
        if shown.launched_ms is not None and account is not None and not account.confirmed:
            await self.post(InstanceAcquired(instance.id, shown.launched_ms))
        if shown.state is CloudState.TERMINATED:
            await self._gone(instance, shown.terminated_ms)
        elif instance.state is InstanceState.TERMINATING:
            self._terminate_again(shown)
        elif shown.state is CloudState.PENDING and instance.id not in self._asked:
            self.launch(instance.id, instance.type)  # the last master may have died in its call

    def _terminate_again(self, shown: CloudInstance) -> None:
        """It should not be there: its end was asked for before a crash, or without effect."""
        up = shown.state in {CloudState.PENDING, CloudState.RUNNING}
        if up and shown.instance not in self._at_work:
            _log.warning("terminating what is still there", instance=shown.instance)
            self.terminate(shown.instance)

    async def _not_listed(self, instance: Instance) -> None:
        """Never launched, not yet to be seen, or forgotten by the cloud long after its end."""
        if instance.id in self._at_work:
            self._missing_since.pop(instance.id, None)
            return
        if instance.state is InstanceState.REQUESTED:
            self.launch(instance.id, instance.type)
            return
        since = self._missing_since.setdefault(instance.id, self.clock())
        if self.clock() - since >= self.settings.settle_ms:
            await self._gone(instance, None)

    async def _gone(self, instance: Instance, at_ms: int | None) -> None:
        self._missing_since.pop(instance.id, None)
        self._asked.discard(instance.id)
        asked = instance.state is InstanceState.TERMINATING
        event = InstanceTerminated if asked else InstanceLost
        self.forget(instance.id)
        await self.post(event(instance.id, at_ms))

    def _work(self, name: InstanceId, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]  # one of the coroutines below
        self._at_work[name] = task

        def done(ended: asyncio.Task[None]) -> None:
            if self._at_work.get(name) is ended:
                del self._at_work[name]
            self._look_again.set()
            if not ended.cancelled() and ended.exception() is not None:
                _log.error("cloud call failed", instance=name, reason=str(ended.exception()))

        task.add_done_callback(done)

    async def _launch(self, name: InstanceId, kind: InstanceType) -> None:
        wait_s = _FIRST_WAIT_S
        while (instance := self.memory.state.instances.get(name)) is not None:
            if instance.state is not InstanceState.REQUESTED:
                return
            try:
                # Its token is written to disk first: not while everybody waits.
                bootstrap = await asyncio.to_thread(self.bootstrap, name)
                await self.cloud.launch(LaunchIntent(name, kind.machine, bootstrap, spot=kind.spot))
                return
            except TryAgainError as error:
                _log.warning("launch is tried again", instance=name, reason=str(error))
            except EvaError as error:
                about_type = isinstance(error, (CapacityError, UnsupportedTypeError))
                await self.post(LaunchRefused(name, str(error), type_refused=about_type))
                return
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    async def _terminate(self, name: InstanceId, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                await self.cloud.terminate(name)
                return
            except InstanceNotFoundError:
                return  # the list decides: it may be too new to be seen, or never was
            except TryAgainError as error:
                _log.warning("termination is tried again", instance=name, reason=str(error))
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
