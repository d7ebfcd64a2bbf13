"""Who has to go: instances that are ours by their tag and that nobody knows. A pure decision.

An instance that is wrongly kept costs money; one that is wrongly ended costs work. So everything
must speak for the end: our tag, an age that no launch in progress can have, and a journal that was
read *after* EC2 was. An intent is in the journal before its instance is asked for, so what EC2
showed first and the journal does not know afterwards was never part of any plan that still holds.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eva.adapters.aws.sightings import Sighting
from eva.model.ids import InstanceId
from eva.ports.cloud import REAP_AFTER_MS, CloudState


class Cause(enum.Enum):
    UNKNOWN = "nobody knows of it"
    DOUBLE = "its intent got another instance"


@dataclass(frozen=True, slots=True)
class Doomed:
    """`instance` is empty where no intent of this journal is meant."""

    ref: str
    instance: InstanceId
    cause: Cause


def doomed(
    seen: Iterable[Sighting], known: Mapping[InstanceId, str | None], cluster: str, now_ms: int
) -> list[Doomed]:
    """`known` are the intents of the journal, and which instance each got, where that is known."""
    found = []
    for each in seen:
        cause = cause_of(each.ref, each.instance, known)
        if cause is not None and _may_end(each, cluster, now_ms):
            found.append(Doomed(each.ref, each.instance, cause))
    return sorted(found, key=lambda each: each.ref)


def cause_of(
    ref: str, instance: InstanceId, known: Mapping[InstanceId, str | None]
) -> Cause | None:
    """Why nobody needs the instance `ref` that was asked for under this intent; None: it is."""
    if instance not in known:
        return Cause.UNKNOWN
    return Cause.DOUBLE if known[instance] not in {None, ref} else None


def _may_end(each: Sighting, cluster: str, now_ms: int) -> bool:
    return (
        each.cluster == cluster
        and each.state is not CloudState.TERMINATED
        and now_ms - each.launched_ms > REAP_AFTER_MS
    )
