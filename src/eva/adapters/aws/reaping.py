"""Carries out what the reaper decides, sweep by sweep, until EC2 says that all of it is gone.

Nothing is remembered between sweeps: what could not be ended is decided upon again next time, from
what EC2 and the journal say by then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from eva.adapters.aws.ec2 import AwsCloud
from eva.adapters.aws.failures import ApiError, typed_errors
from eva.adapters.aws.reaper import Doomed, doomed
from eva.model.ids import InstanceId


@dataclass(frozen=True, slots=True)
class Sweep:
    """`ended` were asked to end; `failed` were not, and why."""

    ended: Sequence[Doomed]
    failed: Sequence[tuple[Doomed, str]]

    @property
    def clean(self) -> bool:
        return not (self.ended or self.failed)


async def sweep(
    cloud: AwsCloud,
    known: Callable[[], Awaitable[Collection[InstanceId]]],
    clock: Callable[[], int],
) -> Sweep:
    """`known` reads the journal: every intent that is not known to be over."""
    with typed_errors("looking for instances that nobody knows"):
        seen = await cloud.instances.all()  # first, so that the journal is never the older of both
    intents = {each: cloud.ref(each) for each in await known()}
    ended, failed = [], []
    for each in doomed(seen, intents, cloud.instances.cluster, clock()):
        try:
            await cloud.instances.terminate(each.ref)
            ended.append(each)
        except ApiError as error:
            failed.append((each, str(error)))
    return Sweep(ended, failed)
