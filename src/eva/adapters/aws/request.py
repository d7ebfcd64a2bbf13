"""What RunInstances is asked for: one instance, marked as ours from its first moment.

Tags are part of the launch and not a call after it, so there is no moment in which an instance,
its volume or its network interface exists and nobody can tell whose it is. Everything that comes
with an instance goes with it.
"""

from __future__ import annotations

from typing import Any

from eva.adapters.aws.names import Mark
from eva.adapters.aws.settings import AwsSettings
from eva.adapters.aws.user_data import filled
from eva.model.errors import OperatorError
from eva.ports.cloud import LaunchIntent

_MOST_USER_DATA = 16_384  # bytes, says EC2, before they are encoded


def run_instances(
    settings: AwsSettings, mark: Mark, intent: LaunchIntent, type_: str, zone: str, attempt: int
) -> dict[str, Any]:
    kinds = ["instance", "volume", "network-interface"]
    asked: dict[str, Any] = {
        "ClientToken": mark.token(intent.instance, type_, zone, attempt),
        "MinCount": 1,
        "MaxCount": 1,
        "ImageId": settings.image,
        "InstanceType": type_,
        "Placement": {"AvailabilityZone": zone},
        "UserData": user_data(settings, intent, type_),
        "InstanceInitiatedShutdownBehavior": "terminate",
        # Containers on a bridge are a hop further away: they cannot reach what the instance may do.
        "MetadataOptions": {
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": 1,
            "HttpEndpoint": "enabled",
        },
    }
    asked |= _network(settings, zone) | _disk(settings)
    if settings.instance_profile:
        asked["IamInstanceProfile"] = {"Name": settings.instance_profile}
    if intent.spot:
        kinds.append("spot-instances-request")
        asked["InstanceMarketOptions"] = {
            "MarketType": "spot",
            "SpotOptions": {
                "SpotInstanceType": "one-time",
                "InstanceInterruptionBehavior": "terminate",
            },
        }
    ours = mark.tags(intent.instance)
    asked["TagSpecifications"] = [{"ResourceType": kind, "Tags": ours} for kind in kinds]
    return asked


def user_data(settings: AwsSettings, intent: LaunchIntent, type_: str) -> str:
    """The bootstrap holds one secret, a token that can be used once; there is no other.

    The capacity is the catalog's: a machine finds a little less memory than what its type is said
    to have, and would refuse tasks that were planned to fill it. Nobody knows it of a type that the
    intent no longer names, as in an attempt from before a restart; then the machine looks itself.
    """
    kinds = {kind.name: kind for kind in (*intent.alternatives, intent.type)}
    capacity = kinds[type_].capacity if type_ in kinds else ()
    words = {
        "bootstrap": intent.bootstrap,
        "capacity": ",".join(map(str, capacity)),
        "endpoint": settings.endpoint or "",
        "join_minutes": str(settings.join_minutes),
        "region": settings.region,
        "software": settings.software,
    }
    text = filled(settings.user_data, words)
    size = len(text.encode())
    if size > _MOST_USER_DATA:
        raise OperatorError(
            f"the user data of {intent.instance} has {size} bytes, and EC2 takes {_MOST_USER_DATA}:"
            " shorten aws.user_data, and fetch what is long from storage"
        )
    return text


def _network(settings: AwsSettings, zone: str) -> dict[str, Any]:
    subnet = settings.subnets.get(zone)
    if subnet is None:
        groups = list(settings.security_groups)
        return {"SecurityGroupIds": groups} if groups else {}
    interface = {
        "DeviceIndex": 0,
        "SubnetId": subnet,
        "AssociatePublicIpAddress": settings.public_address,
        "DeleteOnTermination": True,
    }
    if settings.security_groups:
        interface["Groups"] = list(settings.security_groups)
    return {"NetworkInterfaces": [interface]}


def _disk(settings: AwsSettings) -> dict[str, Any]:
    if not settings.root_volume_gib:
        return {}
    disk = {
        "VolumeSize": settings.root_volume_gib,
        "VolumeType": "gp3",
        "Encrypted": True,
        "DeleteOnTermination": True,
    }
    return {"BlockDeviceMappings": [{"DeviceName": settings.root_device, "Ebs": disk}]}
