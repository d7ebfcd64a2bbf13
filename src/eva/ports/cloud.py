"""The cloud: what rents instances, whoever it is.

An instance is named by our own id from before it exists, the *intent*: the master writes the intent
down, then asks, and may ask again after a crash without getting two. The cloud's own name for it
(`ref`) is for people and bills. Launching and terminating return when the cloud has accepted, not
when it is done; `list` tells how things stand, and it alone is proof that an instance is gone.

Times are the cloud's own: they are what is billed. Spot notices do not come from here but from the
worker on the instance, which hears of them first.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from eva.model.catalog import InstanceType
from eva.model.errors import CapacityError, OperatorError, TryAgainError
from eva.model.ids import InstanceId
from eva.model.units import MS_PER_SECOND

# An instance that is wrongly kept for so long costs little; one that is wrongly ended costs work.
REAP_AFTER_MS = 60 * MS_PER_SECOND


class CloudState(enum.Enum):
    PENDING = "pending"  # accepted; comes up
    RUNNING = "running"
    STOPPING = "stopping"  # still billed, on its way out
    TERMINATED = "terminated"  # nothing of it runs, and nothing will: proof


@dataclass(frozen=True, slots=True)
class LaunchIntent:
    """One instance to be. `bootstrap` is handed to it unread: who the master is, and a token.

    `zones` are hints in order of preference; empty is any. `alternatives` are the types that would
    do instead, best first, where the cloud has none of `type`; `CloudInstance.type` says what came.
    """

    instance: InstanceId
    type: InstanceType
    bootstrap: str = field(repr=False)  # holds a secret
    spot: bool = False
    zones: tuple[str, ...] = ()
    alternatives: tuple[InstanceType, ...] = ()


@dataclass(frozen=True, slots=True)
class CloudInstance:
    """An instance as the cloud tells of it. `launched_ms` begins the bill, `terminated_ms` ends it.

    Both are None while they have not happened. `reason` is the cloud's word on an end that nobody
    here asked for.
    """

    instance: InstanceId
    ref: str
    type: str
    state: CloudState
    launched_ms: int | None = None
    terminated_ms: int | None = None
    spot: bool = False
    zone: str = ""
    address: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Reaped:
    """An instance that nobody knows of and that was asked to end; or why it was not (`failed`)."""

    ref: str
    instance: InstanceId
    reason: str
    failed: str = ""

    def but(self, failed: str) -> Reaped:
        return replace(self, failed=failed)


class Cloud(Protocol):
    """What the master needs of a cloud. Adapters: local, fake; aws."""

    @property
    def name(self) -> str: ...

    async def check(self) -> None:
        """Raise if it cannot be used, saying why: for start-up and for `eva doctor`."""
        ...

    async def launch(self, intent: LaunchIntent) -> CloudInstance:
        """Have the instance, or the one that this intent got before, even if that is gone by now.

        CloudCapacityError, CloudQuotaError, UnsupportedTypeError: there is none, and none is
        billed. After a TryAgainError nobody knows; ask again with the same intent.
        """
        ...

    async def terminate(self, instance: InstanceId) -> CloudInstance:
        """Begin to end it. Safe to repeat, also long after. InstanceNotFoundError if unknown."""
        ...

    async def list(self) -> Sequence[CloudInstance]:
        """Everything that is ours, by id; terminated ones for as long as the cloud remembers."""
        ...

    async def reap(self, known: Callable[[], Collection[InstanceId]]) -> Sequence[Reaped]:
        """Begin to end what is ours, nobody's and older than `REAP_AFTER_MS`, and nothing else.

        `known` tells every intent that is not known to be over. It is asked after the cloud was
        looked at: an intent is known before its instance is asked for, so what was seen first and
        is unknown afterwards is part of no plan. To be repeated until it finds nothing.
        """
        ...

    async def describe(self, instance: InstanceId) -> CloudInstance:
        """One of them. InstanceNotFoundError if unknown."""
        ...

    async def close(self) -> None:
        """Let go of connections. Instances live on."""
        ...


# ---------------------------------------------------------------------------------------- errors
class CloudCapacityError(CapacityError):
    """The cloud has no such instance to give just now."""


class CloudQuotaError(CapacityError):
    """The account may not have more of these."""


class CloudThrottledError(TryAgainError):
    """Too many calls; ask again more slowly."""


class CloudUnreachableError(TryAgainError):
    """No answer: what was asked for may or may not have happened."""


class InstanceNotFoundError(TryAgainError):
    """The cloud knows no such instance: it was never launched, or is too new to be seen yet."""


class UnsupportedTypeError(OperatorError):
    """The cloud does not offer this type, not here or not so."""


class CloudUnauthorisedError(OperatorError):
    """The credentials are missing, wrong, or may not do this."""
