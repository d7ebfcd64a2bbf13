"""Tags and client tokens: how an instance is known to be ours, and to be the same one.

A token is made of everything that is asked for, so the same attempt asked twice is one instance,
and the next attempt is another.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from eva.model.ids import InstanceId

CLUSTER_TAG = "eva:cluster"
INSTANCE_TAG = "eva:instance"


def client_token(cluster: str, instance: InstanceId, type_: str, zone: str, attempt: int) -> str:
    """64 characters, which is what EC2 allows."""
    text = json.dumps([cluster, instance, type_, zone, attempt])
    return hashlib.sha256(text.encode()).hexdigest()


def tags(cluster: str, instance: InstanceId) -> list[dict[str, str]]:
    pairs = {CLUSTER_TAG: cluster, INSTANCE_TAG: instance, "Name": f"eva {cluster} {instance}"}
    return [{"Key": key, "Value": value} for key, value in pairs.items()]


def read_tags(found: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in found}


def tag_filters(cluster: str, instance: InstanceId | None = None) -> list[dict[str, object]]:
    filters: list[dict[str, object]] = [{"Name": f"tag:{CLUSTER_TAG}", "Values": [cluster]}]
    if instance is not None:
        filters.append({"Name": f"tag:{INSTANCE_TAG}", "Values": [instance]})
    return filters
