"""What EC2 tells of an instance, read into what the port tells of it.

EC2 tells when an instance was launched but not when it ended, and of an ended one it soon tells
nothing at all. So the end is the moment at which it was first seen to have ended: a little late,
never early, as it should be for a bill.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from eva.adapters.aws.names import CLUSTER_TAG, INSTANCE_TAG, JOURNAL_TAG, read_tags
from eva.model.ids import InstanceId
from eva.model.units import MS_PER_SECOND
from eva.ports.cloud import CloudInstance, CloudState

_STATES = {
    "pending": CloudState.PENDING,
    "running": CloudState.RUNNING,
    "shutting-down": CloudState.STOPPING,
    "stopping": CloudState.STOPPING,
    "stopped": CloudState.STOPPING,  # somebody may start it again: no proof of anything
    "terminated": CloudState.TERMINATED,
}
_ALIVE = (CloudState.RUNNING, CloudState.PENDING, CloudState.STOPPING, CloudState.TERMINATED)
# Ends of instances that never ran, and are not billed.
_STILLBORN = frozenset(
    {
        "Server.InsufficientInstanceCapacity",
        "Client.InternalError",
        "Client.VolumeLimitExceeded",
        "Client.InvalidSnapshot.NotFound",
    }
)


@dataclass(frozen=True, slots=True)
class Sighting:
    """An instance as EC2 shows it. `launched_ms` is when EC2 accepted it.

    `instance` is empty where another journal than ours asked for it: none of our intents is meant.
    """

    ref: str
    cluster: str
    instance: InstanceId
    type: str
    zone: str
    state: CloudState
    launched_ms: int
    spot: bool = False
    address: str = ""
    reason: str = ""
    ran: bool = True

    def told(self, ended_ms: int | None = None) -> CloudInstance:
        over = self.state is CloudState.TERMINATED
        return CloudInstance(
            self.instance,
            self.ref,
            self.type,
            self.state,
            self.launched_ms if self.ran else None,
            ended_ms if over else None,
            self.spot,
            self.zone,
            self.address,
            self.reason,
        )


def sightings(reservations: Iterable[Mapping[str, Any]], journal: str) -> list[Sighting]:
    """By intent; of several instances of one intent, the most alive first."""
    found = [_sighting(raw, journal) for each in reservations for raw in each["Instances"]]
    return sorted(
        found,
        key=lambda each: (each.instance, _ALIVE.index(each.state), each.launched_ms, each.ref),
    )


def _sighting(raw: Mapping[str, Any], journal: str) -> Sighting:
    ours = read_tags(raw.get("Tags", ()))
    intent = ours.get(INSTANCE_TAG, "") if ours.get(JOURNAL_TAG, "") == journal else ""
    why = raw.get("StateReason", {})
    # A state that is new to us proves nothing, so it counts as still being paid for.
    state = _STATES.get(raw["State"]["Name"], CloudState.STOPPING)
    launched: dt.datetime = raw["LaunchTime"]
    return Sighting(
        raw["InstanceId"],
        ours.get(CLUSTER_TAG, ""),
        InstanceId(intent),
        raw["InstanceType"],
        raw.get("Placement", {}).get("AvailabilityZone", ""),
        state,
        round(launched.timestamp() * MS_PER_SECOND),
        raw.get("InstanceLifecycle") == "spot",
        raw.get("PrivateIpAddress", ""),
        why.get("Message", "") or raw.get("StateTransitionReason", ""),
        state is not CloudState.PENDING and why.get("Code") not in _STILLBORN,
    )
