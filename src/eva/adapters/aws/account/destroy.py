"""The plan of `eva aws destroy`: all that bears the cluster's tag, in an order that works.

What hangs on something goes before it. What bears no tag of ours stays, whatever its name is, and
is told of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from eva.adapters.aws.account import bucket as buckets
from eva.adapters.aws.account import groups, inventory, roles
from eva.adapters.aws.account.api import Api
from eva.adapters.aws.account.bucket import Buckets
from eva.adapters.aws.account.claim import FILE, drop_claim
from eva.adapters.aws.account.contents import Contents, empty, weighed
from eva.adapters.aws.account.identity import Account, account_of
from eva.adapters.aws.account.inventory import Found
from eva.adapters.aws.account.ownership import ForeignResourceError
from eva.adapters.aws.account.plan import Action, Plan, Step, Work
from eva.adapters.aws.account.target import Target
from eva.model.errors import OperatorError, TryAgainError

_GONE = frozenset({"NoSuchEntity", "InvalidGroup.NotFound", "NoSuchBucket", "404"})
_GONE_EC2 = frozenset(
    {"InvalidVolume.NotFound", "InvalidNetworkInterfaceID.NotFound", "InvalidInstanceID.NotFound"}
)
_LOOK_EVERY_S, _LOOKS = 5.0, 120


class InstancesRunError(OperatorError):
    """A cluster that still runs is not taken apart."""


@dataclass(frozen=True, slots=True)
class Destroy:
    """`data` is what is in the bucket, and None if there is no bucket of ours."""

    plan: Plan
    target: Target
    account: Account
    bucket: str
    data: Contents | None


def plan_destroy(api: Api, target: Target, *, end_instances: bool = False) -> Destroy:
    account = account_of(api)
    target.check_account(account)
    running = inventory.instances(api, target.cluster)
    if running and not end_instances:
        raise InstancesRunError(_still_run(target, running))
    bucket = target.bucket(account)
    bucket_steps, data = _bucket_steps(api, target, bucket)
    steps = [
        *_instance_steps(api, running),
        *_leftover_steps(api, target.cluster, {each.id for each in running}),
        *_group_steps(api, target.cluster),
        *_profile_steps(api, target.cluster),
        *_role_steps(api, target.cluster),
        *bucket_steps,
        *_file_steps(target),
    ]
    return Destroy(Plan(tuple(steps)), target, account, bucket, data)


def _still_run(target: Target, running: Sequence[Found]) -> str:
    names = ", ".join(each.id for each in running[:5])
    more = f" and {len(running) - 5} more" if len(running) > 5 else ""
    return (
        f"{len(running)} instances of the cluster {target.cluster} are still there ({names}{more}):"
        " end them with `eva down`, or here with --end-instances"
    )


def _instance_steps(api: Api, running: Sequence[Found]) -> Iterator[Step]:
    for each in running:
        ask = partial(api.remove, "ec2", "terminate_instances", _GONE_EC2, InstanceIds=[each.id])
        yield _removal(inventory.INSTANCE, each.id, each.type, Work(f"ending {each.id}", ask))
    if running:
        wait = partial(_wait_until_ended, api, [each.id for each in running])
        work = Work("waiting for the end of the instances", wait)
        yield Step(Action.KEEP, "end of the instances", "awaited", (), (work,))


def _wait_until_ended(api: Api, ids: Sequence[str]) -> None:
    filters = [
        {"Name": "instance-id", "Values": list(ids)},
        {"Name": "instance-state-name", "Values": list(inventory.ALIVE)},
    ]
    for _ in range(_LOOKS):
        if not api.pages("ec2", "describe_instances", "Reservations", Filters=filters):
            return
        api.pause(_LOOK_EVERY_S)
    raise TryAgainError(
        f"{', '.join(ids)} have not ended in {_LOOK_EVERY_S * _LOOKS:.0f} s: run this again later"
    )


def _leftover_steps(api: Api, cluster: str, ending: set[str]) -> Iterator[Step]:
    """Volumes and interfaces that outlived their instance; the others go with it."""
    for each in inventory.spot_requests(api, cluster):
        cancel = partial(
            api.change, "ec2", "cancel_spot_instance_requests", SpotInstanceRequestIds=[each.id]
        )
        if each.host not in ending:
            work = Work(f"cancelling spot request {each.id}", cancel)
            yield _removal(inventory.SPOT, each.id, each.state, work)
    for found, operation, key in (
        (inventory.volumes(api, cluster), "delete_volume", "VolumeId"),
        (inventory.interfaces(api, cluster), "delete_network_interface", "NetworkInterfaceId"),
    ):
        for each in found:
            if not each.host:
                drop = partial(api.remove, "ec2", operation, _GONE_EC2, **{key: each.id})
                work = Work(f"deleting {each.kind} {each.id}", drop)
                yield _removal(each.kind, each.id, each.state, work)


def _group_steps(api: Api, cluster: str) -> Iterator[Step]:
    """A group that lets another in goes before the other."""
    found = inventory.security_groups(api, cluster)
    for each in sorted(found, key=lambda group: (not _lets_in_groups(group), group.id)):
        drop = partial(api.remove, "ec2", "delete_security_group", _GONE, GroupId=each.id)
        work = Work(f"deleting {groups.KIND} {each.name} ({each.id})", drop)
        yield _removal(groups.KIND, each.name, each.id, work)


def _lets_in_groups(group: Found) -> bool:
    raw = group.raw or {}
    return any(each.get("UserIdGroupPairs") for each in raw.get("IpPermissions", ()))


def _profile_steps(api: Api, cluster: str) -> Iterator[Step]:
    for each in inventory.profiles(api, cluster):
        asked = {"InstanceProfileName": each.id}
        held = [role["RoleName"] for role in (each.raw or {}).get("Roles", ())]
        take_out = (
            Work(
                f"taking {roles.ROLE} {role} out of {roles.PROFILE} {each.id}",
                partial(
                    api.remove, "iam", "remove_role_from_instance_profile", _GONE,
                    RoleName=role, **asked,
                ),
            )
            for role in held
        )  # fmt: skip
        drop = partial(api.remove, "iam", "delete_instance_profile", _GONE, **asked)
        work = Work(f"deleting {roles.PROFILE} {each.id}", drop)
        yield _removal(roles.PROFILE, each.id, "", *take_out, work)


def _role_steps(api: Api, cluster: str) -> Iterator[Step]:
    """With every policy that hangs on them, or IAM would refuse."""
    for each in inventory.iam_roles(api, cluster):
        asked = {"RoleName": each.id}
        with api.doing(f"looking at the policies of {roles.ROLE} {each.id}"):
            inline = api.pages("iam", "list_role_policies", "PolicyNames", **asked)
            attached = api.pages("iam", "list_attached_role_policies", "AttachedPolicies", **asked)
        work = [
            *(_off(api, each.id, "delete_role_policy", PolicyName=name) for name in inline),
            *(
                _off(api, each.id, "detach_role_policy", PolicyArn=policy["PolicyArn"])
                for policy in attached
            ),
            Work(
                f"deleting {roles.ROLE} {each.id}",
                partial(api.remove, "iam", "delete_role", _GONE, **asked),
            ),
        ]
        told = ", ".join([*inline, *(policy["PolicyName"] for policy in attached)])
        yield _removal(roles.ROLE, each.id, f"with its policies {told}" if told else "", *work)


def _off(api: Api, role: str, operation: str, **policy: Any) -> Work:
    do = partial(api.remove, "iam", operation, _GONE, RoleName=role, **policy)
    return Work(f"taking policies off {roles.ROLE} {role}", do)


def _bucket_steps(api: Api, target: Target, name: str) -> tuple[list[Step], Contents | None]:
    claimed = target.claim is not None and target.claim.bucket == name
    found = Buckets(api, target.cluster, lambda asked: claimed and asked == name)
    try:
        if not found.exists(name):
            return [], None
        found.check_mark(name)
    except ForeignResourceError as error:
        return [Step(Action.KEEP, buckets.KIND, name, (str(error),))], None
    data = weighed(api, name)
    work = [
        Work(
            f"deleting {buckets.KIND} {name}",
            partial(api.remove, "s3", "delete_bucket", _GONE, Bucket=name),
        )
    ]
    if data.objects or data.uploads:
        work.insert(0, Work(f"emptying {buckets.KIND} {name}", partial(empty, api, name)))
    return [_removal(buckets.KIND, name, data.told(), *work)], data


def _file_steps(target: Target) -> Iterator[Step]:
    if target.before is not None:
        work = Work(f"removing {target.path}", partial(target.path.unlink, missing_ok=True))
        yield _removal("settings", str(target.path), "", work)
    if target.claim is not None and target.claim.cluster == target.cluster:
        work = Work("removing the claim", partial(drop_claim, target.home))
        yield _removal("claim", str(target.home / FILE), "", work)


def _removal(kind: str, name: str, told: str, *work: Work) -> Step:
    return Step(Action.REMOVE, kind, name, (told,) if told else (), work)
