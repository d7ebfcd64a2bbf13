"""The plan of `eva aws init`: what a cluster needs, compared with what is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from eva.adapters.aws.account.api import Api
from eva.adapters.aws.account.bucket import Buckets
from eva.adapters.aws.account.claim import Claim, write_claim
from eva.adapters.aws.account.groups import Admission, Groups, WantedGroup
from eva.adapters.aws.account.identity import Account, account_of
from eva.adapters.aws.account.image import IMAGE_PARAMETER, Image, find_image, is_there
from eva.adapters.aws.account.names import IAM_PATH, Names
from eva.adapters.aws.account.network import Network, find_network
from eva.adapters.aws.account.plan import Action, Plan, Step, Work
from eva.adapters.aws.account.policies import Blanks, Policy, policy
from eva.adapters.aws.account.roles import Roles, WantedRole
from eva.adapters.aws.account.settings_step import Decided, settings_step
from eva.adapters.aws.account.software_step import software_step
from eva.adapters.aws.account.spot_role import spot_role_step
from eva.adapters.aws.account.target import Target
from eva.adapters.aws.config_file import AwsConfig

WORKER_PORTS = (7_333, 7_334)  # beside the API's 7332
LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Init:
    """`adopted` is what was there and ours by its tag, though nothing here tells of having made it.

    Two masters of one cluster end each other's instances, so somebody has to say that it is right.
    """

    plan: Plan
    target: Target
    account: Account
    bucket: str
    adopted: tuple[str, ...]


def plan_init(api: Api, target: Target) -> Init:
    account = account_of(api)
    target.check_account(account)
    bucket = target.bucket(account)
    network = find_network(api, _subnets(target))
    image = _image(api, target)
    groups = Groups(api, target.cluster, network.vpc)
    names = Names(target.cluster, account.id)
    made = [groups.step(each) for each in wanted_groups(names, _ports(target))]
    roles = Roles(api, target.cluster)
    blanks = find_blanks(target, account, network.vpc, roles)
    made += _role_steps(roles, target, names, blanks)
    claim = Claim(target.cluster, account.id, target.region, bucket)
    buckets = Buckets(api, target.cluster, lambda name: name == bucket and target.claim == claim)
    made.append(buckets.step(bucket, _bucket_policy(target, blanks)))
    adopted = _adopted(target, account, made)
    steps = [*_shown(network, image), *made, spot_role_step(api)]
    software = _kept_software(target)
    if software is None:
        is_new = made[-1].action is Action.CREATE
        step, software = software_step(api, bucket, bucket_is_there=not is_new)
        steps.append(step)
    decided = Decided(
        account.id, bucket, network.subnets, image, software, _profiles(target, names),
        names.workers, names.master, _ports(target),
    )  # fmt: skip
    steps.append(settings_step(api, target, decided, groups))
    claimed = steps if target.claim == claim else _claiming(steps, target, claim)
    return Init(Plan(tuple(claimed)), target, account, bucket, adopted)


def wanted_groups(names: Names, ports: tuple[int, ...]) -> tuple[WantedGroup, ...]:
    cluster = names.cluster
    return (
        WantedGroup(names.workers, f"Instances of Eva's cluster {cluster}: nobody is let in"),
        WantedGroup(
            names.master,
            f"Master of Eva's cluster {cluster}: its workers are let in",
            (Admission(names.workers, ports),),
        ),
    )


def find_blanks(target: Target, account: Account, vpc: str, roles: Roles) -> Blanks:
    names = Names(target.cluster, account.id)
    given, _ = _profiles(target, names)
    arn = (
        account.role_arn(IAM_PATH, names.workers)
        if given == names.workers
        else roles.role_of_profile(given, "--instance-profile")
    )
    bucket = target.bucket(account)
    return Blanks(account, target.region, target.cluster, bucket, vpc, arn)


def _role_steps(roles: Roles, target: Target, names: Names, blanks: Blanks) -> list[Step]:
    """Those that somebody else made are used as they are."""
    workers, master = _profiles(target, names)
    told = {
        names.workers: ("workers", f"What instances of Eva's cluster {names.cluster} may do"),
        names.master: ("master", f"What the master of Eva's cluster {names.cluster} may do"),
    }
    steps = []
    for name in (workers, master):
        if name not in told:
            why = ("made by somebody else, and used as it is",)
            steps.append(Step(Action.KEEP, "instance profile", name, why))
            continue
        kind, description = told[name]
        wanted = WantedRole(name, description, policy("trust", blanks), policy(kind, blanks))
        steps += [roles.role_step(wanted), roles.profile_step(name)]
    return steps


def _bucket_policy(target: Target, blanks: Blanks) -> Policy | None:
    """A bucket that is reached over plain HTTP, as emulators are, cannot be closed to it."""
    plain = (target.endpoint or "").startswith("http://")
    return None if plain else policy("bucket", blanks)


def _profiles(target: Target, names: Names) -> tuple[str, str]:
    """Of workers and master: as asked for, as it was, or of our own."""
    before = target.before
    return (
        target.wishes.workers_profile
        or (before.settings.instance_profile if before else "")
        or names.workers,
        target.wishes.master_profile
        or (before.master_instance_profile if before else "")
        or names.master,
    )


def _subnets(target: Target) -> Mapping[str, str]:
    return target.wishes.subnets or (target.before.settings.subnets if target.before else {})


def _ports(target: Target) -> tuple[int, ...]:
    return (target.before.worker_ports if target.before else ()) or WORKER_PORTS


def _image(api: Api, target: Target) -> Image:
    """As asked for; else as it was, for as long as that can be had; else the newest."""
    wished, before = target.wishes.image, target.before
    parameter = (before.image_parameter if before else "") or IMAGE_PARAMETER
    if wished:
        return find_image(api, parameter if wished == LATEST else wished)
    if before is not None and is_there(api, before.settings.image):
        kept = find_image(api, before.settings.image)
        return replace(
            kept, root_device=before.settings.root_device, parameter=before.image_parameter
        )
    return find_image(api, parameter)


def _kept_software(target: Target) -> str | None:
    """None: the wheel of this Eva is to be used. Else what somebody chose, which may be none."""
    if not target.wishes.software:
        return ""
    before: AwsConfig | None = target.before
    if before is None or before.settings.software.startswith(f"s3://{before.bucket}/"):
        return None
    return before.settings.software


def _shown(network: Network, image: Image) -> list[Step]:
    """What is used and not made."""
    which = "the default VPC" if network.is_default else "its subnets were named"
    zones = f"zones {', '.join(network.subnets)}"
    looked_up = (f"looked up as {image.parameter}",) if image.parameter else ()
    return [
        Step(Action.KEEP, "VPC", network.vpc, (which, zones)),
        Step(Action.KEEP, "image", image.id, (image.name, *looked_up)),
    ]


def _adopted(target: Target, account: Account, steps: list[Step]) -> tuple[str, ...]:
    if target.begun_here(account):
        return ()
    wishes = target.wishes
    theirs = {wishes.workers_profile, wishes.master_profile}
    return tuple(
        f"{step.kind} {step.name}"
        for step in steps
        if step.action is not Action.CREATE and step.name not in theirs
    )


def _claiming(steps: list[Step], target: Target, claim: Claim) -> list[Step]:
    """The claim goes before whatever is done first."""
    note = Work("noting what is to be made", partial(write_claim, target.home, claim))
    first = next((at for at, step in enumerate(steps) if step.work), None)
    if first is None:
        return steps
    with_note = replace(steps[first], work=(note, *steps[first].work))
    return [*steps[:first], with_note, *steps[first + 1 :]]
