"""A cloud without machines, for tests: scripted refusals, lost replies, delays, and sudden ends.

Instances are rows in memory, and time is whatever the given clock says: an instance runs once its
delays have passed on it. With the same contract as the real ones, by the same suite.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from eva.model.catalog import InstanceDelays
from eva.model.errors import EvaError
from eva.model.ids import InstanceId
from eva.ports.cloud import (
    REAP_AFTER_MS,
    CloudInstance,
    CloudState,
    CloudUnreachableError,
    InstanceNotFoundError,
    LaunchIntent,
    Reaped,
)


@dataclass
class _Rented:
    intent: LaunchIntent
    asked_ms: int
    delays: InstanceDelays
    ending_ms: int | None = None
    ended_ms: int | None = None
    reason: str = ""


class FakeCloud:
    """`refuse_next` fails a call that then does nothing; `lose_next_reply` one that did it."""

    name = "fake"

    def __init__(self, clock: Callable[[], int], delays: InstanceDelays | None = None) -> None:
        self._clock = clock
        self._delays = delays
        self._rented: dict[InstanceId, _Rented] = {}
        self._refusals: dict[str, deque[EvaError]] = {}
        self._lost_replies: dict[str, int] = {}
        self.calls: list[str] = []

    # The script

    def refuse_next(self, call: str, error: EvaError) -> None:
        self._refusals.setdefault(call, deque()).append(error)

    def lose_next_reply(self, call: str) -> None:
        self._lost_replies[call] = self._lost_replies.get(call, 0) + 1

    def take_back(self, instance: InstanceId, reason: str = "taken back") -> None:
        """The cloud ends an instance by itself, at once."""
        rented = self._rented[instance]
        if rented.ended_ms is None:
            rented.ended_ms = self._clock()
            rented.reason = reason

    def intent(self, instance: InstanceId) -> LaunchIntent:
        return self._rented[instance].intent

    # The port

    async def check(self) -> None:
        self._begin("check")

    async def launch(self, intent: LaunchIntent) -> CloudInstance:
        self._begin("launch")
        if intent.instance not in self._rented:
            delays = self._delays or intent.type.delays
            self._rented[intent.instance] = _Rented(intent, self._clock(), delays)
        self._reply("launch")
        return self._told(intent.instance)

    async def terminate(self, instance: InstanceId) -> CloudInstance:
        self._begin("terminate")
        rented = self._known(instance)
        if rented.ending_ms is None:
            rented.ending_ms = self._clock()
        self._reply("terminate")
        return self._told(instance)

    async def list(self) -> Sequence[CloudInstance]:
        self._begin("list")
        self._reply("list")
        return [self._told(instance) for instance in sorted(self._rented)]

    async def reap(self, known: Callable[[], Collection[InstanceId]]) -> Sequence[Reaped]:
        self._begin("reap")
        old_ms = self._clock() - REAP_AFTER_MS
        found = [
            instance
            for instance, rented in sorted(self._rented.items())
            if rented.asked_ms < old_ms and self._told(instance).state is not CloudState.TERMINATED
        ]
        nobodys = sorted(set(found) - set(known()))
        return [Reaped((await self.terminate(i)).ref, i, "nobody knows of it") for i in nobodys]

    async def describe(self, instance: InstanceId) -> CloudInstance:
        self._begin("describe")
        self._reply("describe")
        return self._told(instance)

    async def close(self) -> None:
        """Nothing is held."""

    def _begin(self, call: str) -> None:
        self.calls.append(call)
        waiting = self._refusals.get(call)
        if waiting:
            raise waiting.popleft()

    def _reply(self, call: str) -> None:
        if self._lost_replies.get(call, 0) > 0:
            self._lost_replies[call] -= 1
            raise CloudUnreachableError(f"the reply to {call} was lost: ask again")

    def _known(self, instance: InstanceId) -> _Rented:
        rented = self._rented.get(instance)
        if rented is None:
            raise InstanceNotFoundError(f"the fake cloud has no instance {instance}: launch it")
        return rented

    def _told(self, instance: InstanceId) -> CloudInstance:
        rented = self._known(instance)
        self._settle(rented)
        launched_ms = self._launched_ms(rented)
        return CloudInstance(
            instance,
            f"fake-{instance}",
            rented.intent.type.name,
            self._state(rented, launched_ms),
            launched_ms,
            rented.ended_ms,
            rented.intent.spot,
            next(iter(rented.intent.zones), "zone-a"),
            "127.0.0.1",
            rented.reason,
        )

    def _settle(self, rented: _Rented) -> None:
        """An end that was asked for has come when its delay has passed."""
        if rented.ending_ms is None or rented.ended_ms is not None:
            return
        ended_ms = rented.ending_ms + rented.delays.terminate_ms
        if self._clock() >= ended_ms:
            rented.ended_ms = ended_ms
            rented.reason = "terminated as asked"

    def _launched_ms(self, rented: _Rented) -> int | None:
        """Billing begins when it is acquired, unless it was called off before."""
        launched_ms = rented.asked_ms + rented.delays.acquire_ms
        called_off = rented.ending_ms is not None and rented.ending_ms < launched_ms
        return None if called_off or self._clock() < launched_ms else launched_ms

    def _state(self, rented: _Rented, launched_ms: int | None) -> CloudState:
        if rented.ended_ms is not None:
            return CloudState.TERMINATED
        if rented.ending_ms is not None:
            return CloudState.STOPPING
        return CloudState.PENDING if launched_ms is None else CloudState.RUNNING
