"""Carries out what the reaper decides, sweep by sweep, until EC2 says that all of it is gone.

Nothing is remembered between sweeps: what could not be ended is decided upon again next time, from
what EC2 and the journal say by then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from eva.adapters.aws.failures import ApiError
from eva.adapters.aws.instances import Instances
from eva.adapters.aws.reaper import Doomed, doomed
from eva.model.ids import InstanceId
from eva.ports.cloud import Reaped


async def sweep(
    instances: Instances,
    known: Callable[[], Collection[InstanceId]],
    ref: Callable[[InstanceId], str | None],
    clock: Callable[[], int],
) -> Sequence[Reaped]:
    """`known` reads the journal, and `ref` the book: which instance an intent got."""
    seen = await instances.all()  # first, so that the journal is never the older of both
    intents = {each: ref(each) for each in known()}
    return [
        await _end(instances, each)
        for each in doomed(seen, intents, instances.mark.cluster, clock())
    ]


async def _end(instances: Instances, each: Doomed) -> Reaped:
    told = Reaped(each.ref, each.instance, each.cause.value)
    try:
        await instances.terminate(each.ref)
    except ApiError as error:
        return told.but(str(error))
    return told
