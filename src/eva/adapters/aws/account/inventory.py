"""Everything in a region that bears the tag of a cluster, or of any: what may cost money, and more.

EC2 lists by tag. IAM does not: there, everything of ours is under one path. Buckets are listed by
how their names begin, together with those that somebody names.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from eva.adapters.aws.account import bucket as buckets
from eva.adapters.aws.account import groups, roles
from eva.adapters.aws.account.api import Api
from eva.adapters.aws.account.names import BUCKET_PREFIX, IAM_PATH
from eva.adapters.aws.names import CLUSTER_TAG, INSTANCE_TAG, JOURNAL_TAG, read_tags
from eva.model.units import MS_PER_SECOND

INSTANCE, VOLUME, INTERFACE, SPOT = "instance", "volume", "network interface", "spot request"
ALIVE = ("pending", "running", "shutting-down", "stopping", "stopped")
_OPEN_SPOT = ("open", "active")


@dataclass(frozen=True, slots=True)
class Found:
    """One thing. `host` is the instance that it hangs on, `intent` and `journal` say whose it is.

    `name` is what people call it, where it has a name beside its id.
    """

    kind: str
    id: str
    cluster: str
    state: str = ""
    created_ms: int | None = None
    host: str = ""
    intent: str = ""
    journal: str = ""
    type: str = ""
    zone: str = ""
    spot: bool = False
    name: str = ""
    raw: Mapping[str, Any] | None = None


def instances(api: Api, cluster: str | None) -> list[Found]:
    filters = [*_marked(cluster), {"Name": "instance-state-name", "Values": list(ALIVE)}]
    found = _listed(api, "describe_instances", "Reservations", filters)
    return _sorted(_instance(each) for group in found for each in group["Instances"])


def alive(api: Api, ids: Iterable[str]) -> set[str]:
    """Those of these instances that are there, whatever tags they bear."""
    wanted = sorted(set(ids))
    if not wanted:
        return set()
    filters = [
        {"Name": "instance-id", "Values": wanted},
        {"Name": "instance-state-name", "Values": list(ALIVE)},
    ]
    found = _listed(api, "describe_instances", "Reservations", filters)
    return {each["InstanceId"] for group in found for each in group["Instances"]}


def volumes(api: Api, cluster: str | None) -> list[Found]:
    return _sorted(
        _found(
            VOLUME, "VolumeId", each, state=each["State"], created=each["CreateTime"],
            host=_host(each.get("Attachments", ())), zone=each["AvailabilityZone"],
            type=f"{each['Size']} GiB {each.get('VolumeType', '')}".strip(),
        )
        for each in _listed(api, "describe_volumes", "Volumes", _marked(cluster))
    )  # fmt: skip


def interfaces(api: Api, cluster: str | None) -> list[Found]:
    found = _listed(api, "describe_network_interfaces", "NetworkInterfaces", _marked(cluster))
    return _sorted(
        _found(
            INTERFACE, "NetworkInterfaceId", each, state=each["Status"],
            host=_host([each.get("Attachment", {})]), zone=each.get("AvailabilityZone", ""),
        )
        for each in found
    )  # fmt: skip


def spot_requests(api: Api, cluster: str | None) -> list[Found]:
    filters = [*_marked(cluster), {"Name": "state", "Values": list(_OPEN_SPOT)}]
    found = _listed(api, "describe_spot_instance_requests", "SpotInstanceRequests", filters)
    return _sorted(
        _found(
            SPOT, "SpotInstanceRequestId", each, state=each["State"],
            created=each.get("CreateTime"), host=each.get("InstanceId", ""), spot=True,
        )
        for each in found
    )  # fmt: skip


def security_groups(api: Api, cluster: str | None) -> list[Found]:
    found = _listed(api, "describe_security_groups", "SecurityGroups", _marked(cluster))
    return _sorted(
        replace(_found(groups.KIND, "GroupId", each), name=each["GroupName"], raw=each)
        for each in found
    )


def iam_roles(api: Api, cluster: str | None) -> list[Found]:
    """Under our path, and by their tag."""

    def told() -> Iterator[Found]:
        for each in api.pages("iam", "list_roles", "Roles", PathPrefix=IAM_PATH):
            asked = {"RoleName": each["RoleName"]}
            marked = api.find("iam", "list_role_tags", roles.ABSENT, **asked) or {}
            yield _found(roles.ROLE, "RoleName", {**each, **marked}, created=each["CreateDate"])

    with api.doing("listing the roles"):
        return _of_cluster(told(), cluster)


def profiles(api: Api, cluster: str | None) -> list[Found]:
    def told() -> Iterator[Found]:
        listed = api.pages("iam", "list_instance_profiles", "InstanceProfiles", PathPrefix=IAM_PATH)
        for each in listed:
            name = each["InstanceProfileName"]
            asked = {"InstanceProfileName": name}
            whole = api.find("iam", "get_instance_profile", roles.ABSENT, **asked)
            if whole is not None:
                raw = whole["InstanceProfile"]
                made = _found(roles.PROFILE, "InstanceProfileName", raw, raw["CreateDate"])
                yield replace(made, raw=raw)

    with api.doing("listing the instance profiles"):
        return _of_cluster(told(), cluster)


def bucket_list(api: Api, cluster: str | None, named: Iterable[str] = ()) -> list[Found]:
    def told() -> Iterator[Found]:
        listed = {each["Name"]: each for each in api.look("s3", "list_buckets")["Buckets"]}
        names = {name for name in listed if name.startswith(BUCKET_PREFIX)} | set(named)
        for name in sorted(names & set(listed)):
            marked = api.find("s3", "get_bucket_tagging", _UNTOLD, Bucket=name)
            raw = {**listed[name], "Tags": (marked or {}).get("TagSet", ())}
            yield _found(buckets.KIND, "Name", raw, created=raw["CreationDate"])

    with api.doing("listing the buckets"):
        return _of_cluster(told(), cluster)


# A bucket of another region or closed to us is not one that we could say anything about.
_UNTOLD = frozenset(
    {
        "NoSuchTagSet",
        "NoSuchBucket",
        "AccessDenied",
        "PermanentRedirect",
        "IllegalLocationConstraintException",
    }
)


def _instance(raw: Mapping[str, Any]) -> Found:
    return _found(
        INSTANCE, "InstanceId", raw, state=raw["State"]["Name"], created=raw["LaunchTime"],
        host=raw["InstanceId"], type=raw["InstanceType"],
        zone=raw.get("Placement", {}).get("AvailabilityZone", ""),
        spot=raw.get("InstanceLifecycle") == "spot",
    )  # fmt: skip


def _found(
    kind: str, key: str, raw: Mapping[str, Any], created: dt.datetime | None = None, **more: Any
) -> Found:
    marks = read_tags(raw.get("Tags") or raw.get("TagSet") or ())
    return Found(
        kind,
        raw[key],
        marks.get(CLUSTER_TAG, ""),
        created_ms=None if created is None else round(created.timestamp() * MS_PER_SECOND),
        intent=marks.get(INSTANCE_TAG, ""),
        journal=marks.get(JOURNAL_TAG, ""),
        **more,
    )


def _listed(api: Api, operation: str, key: str, filters: list[dict[str, Any]]) -> list[Any]:
    with api.doing("listing what bears the cluster's tag"):
        return api.pages("ec2", operation, key, Filters=filters)


def _marked(cluster: str | None) -> list[dict[str, Any]]:
    if cluster is None:
        return [{"Name": "tag-key", "Values": [CLUSTER_TAG]}]
    return [{"Name": f"tag:{CLUSTER_TAG}", "Values": [cluster]}]


def _host(attachments: Iterable[Mapping[str, Any]]) -> str:
    return next((each["InstanceId"] for each in attachments if each.get("InstanceId")), "")


def _of_cluster(found: Iterable[Found], cluster: str | None) -> list[Found]:
    return _sorted(each for each in found if each.cluster and cluster in {None, each.cluster})


def _sorted(found: Iterable[Found]) -> list[Found]:
    return sorted(found, key=lambda each: (each.cluster, each.id))
