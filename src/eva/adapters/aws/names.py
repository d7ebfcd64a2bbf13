"""Tags and client tokens: how an instance is known to be ours, and to be the same one.

A token is made of everything that is asked for, so the same attempt asked twice is one instance,
and the next attempt is another.

Intents are numbered by the journal, and a journal may be lost with its disk: the next one begins
with the first number again. So tags and tokens name the journal as well. What another journal of
this cluster asked for is ours to end, and never taken for what this one asks for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eva.model.ids import InstanceId

CLUSTER_TAG = "eva:cluster"
INSTANCE_TAG = "eva:instance"
JOURNAL_TAG = "eva:journal"


@dataclass(frozen=True, slots=True)
class Mark:
    """Whose instances they are: the cluster's, and asked for by which journal."""

    cluster: str
    journal: str = ""

    def token(self, instance: InstanceId, type_: str, zone: str, attempt: int) -> str:
        """64 characters, which is what EC2 allows."""
        text = json.dumps([self.cluster, self.journal, instance, type_, zone, attempt])
        return hashlib.sha256(text.encode()).hexdigest()

    def tags(self, instance: InstanceId) -> list[dict[str, str]]:
        pairs = {
            CLUSTER_TAG: self.cluster,
            JOURNAL_TAG: self.journal,
            INSTANCE_TAG: instance,
            "Name": f"eva {self.cluster} {instance}",
        }
        return [{"Key": key, "Value": value} for key, value in pairs.items()]

    def filters(self, instance: InstanceId | None = None) -> list[dict[str, object]]:
        """For everything of the cluster, or for what this journal asked for under one intent."""
        wanted = {CLUSTER_TAG: self.cluster}
        if instance is not None:
            wanted |= {JOURNAL_TAG: self.journal, INSTANCE_TAG: instance}
        return [{"Name": f"tag:{key}", "Values": [value]} for key, value in wanted.items()]


def read_tags(found: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in found}
