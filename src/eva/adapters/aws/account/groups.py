"""Security groups: who may reach an instance. The workers admit nobody; the master, the workers.

What anybody else added to the ways in is drift, shown and taken back. The ways out are left alone:
they are as EC2 makes them, and who narrows them has a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from eva.adapters.aws.account.api import Api
from eva.adapters.aws.account.names import tags
from eva.adapters.aws.account.ownership import check_ours
from eva.adapters.aws.account.plan import Action, Step, Work, compared
from eva.model.errors import InvariantError

KIND = "security group"
Ways = Mapping[str, dict[str, Any]]  # in, by how they are told


@dataclass(frozen=True, slots=True)
class Admission:
    """Everything in the group of this name may reach these TCP ports."""

    group: str
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WantedGroup:
    name: str
    description: str
    admits: tuple[Admission, ...] = ()


class Groups:
    """Of one VPC. Ids are known once a group was seen or made."""

    def __init__(self, api: Api, cluster: str, vpc: str) -> None:
        self._api, self._cluster, self._vpc = api, cluster, vpc
        self.ids: dict[str, str] = {}

    def step(self, wanted: WantedGroup) -> Step:
        found = self._find(wanted.name)
        if found is None:
            work = [Work(f"creating {KIND} {wanted.name}", partial(self._create, wanted))]
            if wanted.admits:
                work.append(self._admitting(wanted, None))
            return Step(Action.CREATE, KIND, wanted.name, (_promise(wanted),), tuple(work))
        check_ours(
            KIND, f"{wanted.name} ({found['GroupId']})", found.get("Tags", ()), self._cluster
        )
        self.ids[wanted.name] = found["GroupId"]
        return self._compare(wanted, found)

    def id_of(self, name: str) -> str:
        if name not in self.ids:
            raise InvariantError(f"{KIND} {name} was neither found nor made before it is needed")
        return self.ids[name]

    # Looking

    def _find(self, name: str) -> Mapping[str, Any] | None:
        filters = [
            {"Name": "group-name", "Values": [name]},
            {"Name": "vpc-id", "Values": [self._vpc]},
        ]
        with self._api.doing(f"looking at {KIND} {name}"):
            found = self._api.pages(
                "ec2", "describe_security_groups", "SecurityGroups", Filters=filters
            )
        return found[0] if found else None

    def _compare(self, wanted: WantedGroup, found: Mapping[str, Any]) -> Step:
        there = ways_in(found)
        known = all(each.group in self.ids for each in wanted.admits)
        meant = self._meant(wanted) if known else {}
        surplus = {told: way for told, way in there.items() if told not in meant}
        details, work = [], []
        if surplus:
            details.append(f"closes what somebody opened: {', '.join(sorted(surplus))}")
            close = partial(self._close, found["GroupId"], surplus)
            work.append(Work(f"closing ways into {KIND} {wanted.name}", close))
        if not known or set(meant) - set(there):
            details.append(_promise(wanted))
            work.append(self._admitting(wanted, there))
        details = details or [_promise(wanted)]
        return compared(KIND, wanted.name, (found["GroupId"], *details), tuple(work))

    # Doing

    def _create(self, wanted: WantedGroup) -> None:
        marked = [{"ResourceType": "security-group", "Tags": tags(self._cluster)}]
        made = self._api.change(
            "ec2",
            "create_security_group",
            GroupName=wanted.name,
            Description=wanted.description,
            VpcId=self._vpc,
            TagSpecifications=marked,
        )
        self.ids[wanted.name] = made["GroupId"]

    def _admitting(self, wanted: WantedGroup, there: Ways | None) -> Work:
        what = f"admitting the workers to {KIND} {wanted.name}"
        return Work(what, partial(self._admit, wanted, frozenset(there or ())))

    def _admit(self, wanted: WantedGroup, there: frozenset[str]) -> None:
        missing = [way for told, way in self._meant(wanted).items() if told not in there]
        self._api.change(
            "ec2",
            "authorize_security_group_ingress",
            GroupId=self.id_of(wanted.name),
            IpPermissions=missing,
        )

    def _close(self, group: str, surplus: Ways) -> None:
        self._api.change(
            "ec2",
            "revoke_security_group_ingress",
            GroupId=group,
            IpPermissions=list(surplus.values()),
        )

    def _meant(self, wanted: WantedGroup) -> Ways:
        return ways_in(
            {
                "IpPermissions": [
                    {
                        "IpProtocol": "tcp",
                        "FromPort": port,
                        "ToPort": port,
                        "UserIdGroupPairs": [{"GroupId": self.id_of(each.group)}],
                    }
                    for each in wanted.admits
                    for port in each.ports
                ]
            }
        )


def ways_in(group: Mapping[str, Any]) -> Ways:
    """One by one, as they can be given back to EC2."""
    found = {}
    for permission in group.get("IpPermissions", ()):
        base = {k: permission[k] for k in ("IpProtocol", "FromPort", "ToPort") if k in permission}
        for field, key in _SOURCES.items():
            for source in permission.get(field, ()):
                told = f"{_ports(permission)} from {source[key]}"
                found[told] = {**base, field: [{key: source[key]}]}
    return found


_SOURCES = {
    "UserIdGroupPairs": "GroupId",
    "IpRanges": "CidrIp",
    "Ipv6Ranges": "CidrIpv6",
    "PrefixListIds": "PrefixListId",
}


def _ports(permission: Mapping[str, Any]) -> str:
    protocol = permission["IpProtocol"]
    if protocol == "-1":
        return "everything"
    first, last = permission.get("FromPort", -1), permission.get("ToPort", -1)
    if first == -1:
        return str(protocol)
    return f"{protocol} {first}" if first == last else f"{protocol} {first}-{last}"


def _promise(wanted: WantedGroup) -> str:
    if not wanted.admits:
        return "admits nobody"
    return "; ".join(
        f"admits {each.group} to tcp {', '.join(map(str, each.ports))}" for each in wanted.admits
    )
