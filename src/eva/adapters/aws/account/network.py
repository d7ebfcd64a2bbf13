"""Where instances go: a subnet for each zone, all of one VPC. It is found, and never made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eva.adapters.aws.account.api import Api
from eva.model.errors import InputError, OperatorError


@dataclass(frozen=True, slots=True)
class Network:
    """`subnets` by zone."""

    vpc: str
    subnets: Mapping[str, str]
    is_default: bool = False


def find_network(api: Api, subnets: Mapping[str, str]) -> Network:
    """The given subnets, checked; without any, those of the default VPC."""
    with api.doing("looking at the network"):
        return _named(api, subnets) if subnets else _default(api)


def _default(api: Api) -> Network:
    found = api.pages("ec2", "describe_vpcs", "Vpcs", Filters=_filters({"is-default": "true"}))
    if not found:
        raise OperatorError(
            f"the account has no default VPC in {api.region}: name subnets with --subnet ZONE=ID, "
            "or make one with `aws ec2 create-default-vpc`"
        )
    vpc = found[0]["VpcId"]
    wanted = {"vpc-id": vpc, "default-for-az": "true", "state": "available"}
    subnets = api.pages("ec2", "describe_subnets", "Subnets", Filters=_filters(wanted))
    if not subnets:
        raise OperatorError(
            f"the default VPC {vpc} has no default subnet: name subnets with --subnet ZONE=ID"
        )
    return Network(vpc, _by_zone(subnets), is_default=True)


def _named(api: Api, subnets: Mapping[str, str]) -> Network:
    found = api.pages("ec2", "describe_subnets", "Subnets", SubnetIds=sorted(subnets.values()))
    zones = {each["SubnetId"]: each["AvailabilityZone"] for each in found}
    for zone, subnet in sorted(subnets.items()):
        if zones.get(subnet) != zone:
            where = f"is in {zones[subnet]}" if subnet in zones else "is not there"
            raise InputError.single(
                "--subnet", f"{subnet} {where}, not in {zone}: write ZONE=ID as EC2 shows them"
            )
    vpcs = sorted({each["VpcId"] for each in found})
    if len(vpcs) != 1:
        raise InputError.single(
            "--subnet", f"the subnets are of several VPCs ({', '.join(vpcs)}): name those of one"
        )
    return Network(vpcs[0], dict(sorted(subnets.items())))


def _by_zone(subnets: list[Mapping[str, Any]]) -> dict[str, str]:
    return dict(sorted((each["AvailabilityZone"], each["SubnetId"]) for each in subnets))


def _filters(wanted: Mapping[str, str]) -> list[dict[str, object]]:
    return [{"Name": name, "Values": [value]} for name, value in wanted.items()]
