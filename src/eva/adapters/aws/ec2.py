"""The cloud port over EC2: what the master asks for, answered from EC2 and the book of attempts.

Neither alone will do. EC2 shows an instance late and forgets it early; the book knows what was
asked for but not what became of it. Where EC2 does not show an instance that the book names, it is
coming up if it is young; otherwise it is gone only after EC2 has not shown it for a while.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from eva.adapters.aws.book import Attempt, AttemptBook, Outcome
from eva.adapters.aws.connection import Connection, boto_client, steady_ms
from eva.adapters.aws.failures import typed_errors
from eva.adapters.aws.instances import Instances
from eva.adapters.aws.launching import Launcher
from eva.adapters.aws.names import Mark
from eva.adapters.aws.pacing import Pacer
from eva.adapters.aws.reaping import sweep
from eva.adapters.aws.settings import AwsSettings
from eva.adapters.aws.sightings import Sighting
from eva.model.ids import InstanceId
from eva.ports.cloud import (
    CloudInstance,
    CloudState,
    CloudUnreachableError,
    InstanceNotFoundError,
    LaunchIntent,
    Reaped,
)

BOOK_FILE = "ec2-attempts.sqlite"


class AwsCloud:
    """`open_ec2` makes one."""

    name = "aws"

    def __init__(
        self,
        settings: AwsSettings,
        instances: Instances,
        book: AttemptBook,
        clock: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._instances = instances
        self._book = book
        self._clock = clock
        self._launcher = Launcher(settings, instances, book, clock)
        self._missing_since: dict[InstanceId, int] = {}
        self._locks: WeakValueDictionary[InstanceId, asyncio.Lock] = WeakValueDictionary()

    # The port

    async def check(self) -> None:
        with typed_errors(f"using EC2 in {self._settings.region}"):
            await self._instances.may_call()

    async def launch(self, intent: LaunchIntent) -> CloudInstance:
        with typed_errors(f"launching {intent.instance} ({intent.type.name})"):
            async with self._lock(intent.instance):
                shown = await self._launcher.launch(intent)
                return self._told(shown) if shown else await self._look(intent.instance)

    async def terminate(self, instance: InstanceId) -> CloudInstance:
        with typed_errors(f"terminating {instance}"):
            async with self._lock(instance):
                attempt = await self._launcher.resolve(instance)
                if attempt is None:
                    raise _unknown(instance)
                if attempt.ended_ms is not None:
                    return await self._look(instance)
                return await self._end(attempt)

    async def list(self) -> Sequence[CloudInstance]:
        with typed_errors(f"listing the instances of {self._settings.cluster}"):
            seen = await self._instances.all()
        shown = self._one_per_intent(seen)
        refs = {each.ref for each in seen}
        told = {each.instance: self._told(each) for each in shown}
        for attempt in self._book.rented():
            if attempt.ref not in refs:
                guess = self._unseen(attempt)
                if guess is not None:
                    told[attempt.instance] = guess
        return [told[instance] for instance in sorted(told)]

    async def reap(self, known: Callable[[], Collection[InstanceId]]) -> Sequence[Reaped]:
        with typed_errors("looking for instances that nobody knows"):
            return await sweep(self._instances, known, self._ref, self._clock)

    async def describe(self, instance: InstanceId) -> CloudInstance:
        with typed_errors(f"looking for {instance}"):
            return await self._look(instance)

    async def close(self) -> None:
        await self._instances.close()
        self._book.close()

    # Details

    def _ref(self, instance: InstanceId) -> str | None:
        """The name at EC2 of the instance that an intent got, if the book knows."""
        last = self._book.last(instance)
        return last.ref if last is not None and last.outcome is Outcome.GOT else None

    def _lock(self, instance: InstanceId) -> asyncio.Lock:
        return self._locks.setdefault(instance, asyncio.Lock())

    async def _look(self, instance: InstanceId) -> CloudInstance:
        attempt = self._book.last(instance)
        if attempt is None or attempt.outcome is not Outcome.GOT:
            found = await self._instances.of(instance)
            if found:
                return self._told(found[0])
            raise _unknown(instance)
        shown = await self._instances.by_ref(attempt.ref)
        told = self._told(shown) if shown else self._unseen(attempt)
        if told is None:
            raise _unknown(instance)
        return told

    async def _end(self, attempt: Attempt) -> CloudInstance:
        accepted = await self._instances.terminate(attempt.ref)
        shown = await self._instances.by_ref(attempt.ref)
        if not accepted and (shown is not None or self._young(attempt)):
            raise CloudUnreachableError(
                f"{attempt.instance} ({attempt.ref}) is too new to be terminated: ask again"
            )
        if accepted and (shown is None or shown.state in {CloudState.PENDING, CloudState.RUNNING}):
            return _from_book(attempt, CloudState.STOPPING, shown)
        told = self._told(shown) if shown else self._unseen(attempt)
        if told is None:
            raise _unknown(attempt.instance)
        return told

    def _one_per_intent(self, seen: Sequence[Sighting]) -> Sequence[Sighting]:
        """The instance that the book names, else the one that is most alive."""
        chosen: dict[InstanceId, Sighting] = {}
        for each in seen:
            if each.instance and (
                each.instance not in chosen or each.ref == self._ref(each.instance)
            ):
                chosen[each.instance] = each
        return tuple(chosen.values())

    def _told(self, shown: Sighting) -> CloudInstance:
        self._missing_since.pop(shown.instance, None)
        if shown.state is not CloudState.TERMINATED:
            return shown.told()
        attempt = self._book.last(shown.instance)
        if attempt is None or attempt.ref != shown.ref:
            return shown.told()
        if attempt.ended_ms is None:
            attempt = self._book.ended(attempt, self._clock(), shown.reason)
        return shown.told(attempt.ended_ms)

    def _unseen(self, attempt: Attempt) -> CloudInstance | None:
        """What to make of an instance that is not shown; None: that cannot be said yet."""
        if attempt.ended_ms is not None:
            return _from_book(attempt, CloudState.TERMINATED)
        if self._young(attempt):
            return _from_book(attempt, CloudState.PENDING)
        since_ms = self._missing_since.setdefault(attempt.instance, self._clock())
        if self._clock() - since_ms < self._settings.settle_ms:
            return None
        self._missing_since.pop(attempt.instance)
        ended = self._book.ended(attempt, self._clock(), "EC2 does not know of it any more")
        return _from_book(ended, CloudState.TERMINATED)

    def _young(self, attempt: Attempt) -> bool:
        asked_ms = attempt.asked_ms or attempt.begun_ms
        return self._clock() - asked_ms < self._settings.settle_ms


def _from_book(attempt: Attempt, state: CloudState, shown: Sighting | None = None) -> CloudInstance:
    over = state is CloudState.TERMINATED
    return CloudInstance(
        attempt.instance,
        attempt.ref,
        attempt.type,
        state,
        shown.told().launched_ms if shown else (attempt.asked_ms if over else None),
        attempt.ended_ms,
        attempt.spot,
        attempt.zone,
        shown.address if shown else "",
        attempt.reason,
    )


def _unknown(instance: InstanceId) -> InstanceNotFoundError:
    return InstanceNotFoundError(
        f"EC2 shows no instance {instance}: it was never launched, or is long gone, or too new"
    )


def open_ec2(
    settings: AwsSettings,
    folder: Path,
    clock: Callable[[], int],
    *,
    journal: str = "",
    new_cluster: bool = False,
    connect: Callable[[], Any] | None = None,
) -> AwsCloud:
    """EC2 for one cluster, whose book is kept in `folder`; `connect` makes another client of EC2.

    `journal` is a name that no other journal has. Each has a book of its own; one that is missing
    although nothing is new (`new_cluster`) is taken for lost.
    """
    book = AttemptBook(
        folder / journal / BOOK_FILE, clock(), 0 if new_cluster else settings.settle_ms
    )
    pacer = Pacer(settings.calls_per_second, settings.burst, steady_ms, random.SystemRandom())
    client = connect or partial(boto_client, "ec2", settings.region, settings.endpoint)
    instances = Instances(Mark(settings.cluster, journal), Connection(client, pacer))
    return AwsCloud(settings, instances, book, clock)
