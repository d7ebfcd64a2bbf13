"""HOME/aws.yaml after an init: what was decided, and all else as somebody left it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace

from eva.adapters.aws import config_file
from eva.adapters.aws.account.api import Api
from eva.adapters.aws.account.groups import Groups
from eva.adapters.aws.account.image import Image
from eva.adapters.aws.account.plan import Action, Step, Work, compared
from eva.adapters.aws.account.target import Target
from eva.adapters.aws.config_file import AwsConfig
from eva.adapters.aws.settings import AwsSettings

KIND = "settings"
_TO_BE_MADE = "(to be made)"


@dataclass(frozen=True, slots=True)
class Decided:
    """`profiles` are of workers and master; the groups are by name."""

    account: str
    bucket: str
    subnets: Mapping[str, str]
    image: Image
    software: str
    profiles: tuple[str, str]
    workers_group: str
    master_group: str
    ports: tuple[int, ...]


def settings_step(api: Api, target: Target, decided: Decided, groups: Groups) -> Step:
    """To be done last: it names what the other steps make."""
    kept = _groups_that_are_there(api, target.before)
    work = Work(
        f"writing {target.path}",
        lambda: config_file.write(target.path, _after(target, decided, groups.ids, kept)),
    )
    if target.before is None:
        told = ("what `eva up --cloud aws` uses",)
        return Step(Action.CREATE, KIND, str(target.path), told, (work,))
    known = {name: groups.ids.get(name, _TO_BE_MADE) for name in _group_names(decided)}
    changed = _changes(target.before, _after(target, decided, known, kept))
    return compared(KIND, str(target.path), tuple(changed), (work,) if changed else ())


def _after(
    target: Target, decided: Decided, ids: Mapping[str, str], kept: tuple[str, ...]
) -> AwsConfig:
    before, image = target.before, decided.image
    workers, master = decided.profiles
    settings = before.settings if before else AwsSettings("x", "x", "x", subnets={"x": "x"})
    after = replace(
        settings,
        cluster=target.cluster,
        region=target.region,
        image=image.id,
        root_device=image.root_device,
        subnets={
            zone: subnet
            for zone, subnet in decided.subnets.items()
            if not settings.zones or zone in settings.zones
        },
        security_groups=_groups_after(settings, ids[decided.workers_group], kept),
        instance_profile=workers,
        software=decided.software,
        endpoint=target.endpoint,
    )
    return AwsConfig(
        after,
        decided.bucket,
        decided.account,
        ids[decided.master_group],
        master,
        image.parameter,
        decided.ports,
    )


def _groups_after(settings: AwsSettings, ours: str, kept: tuple[str, ...]) -> tuple[str, ...]:
    """What somebody chose, if it is still there; ours takes the place of what is gone."""
    if kept and kept == settings.security_groups:
        return kept
    return (ours, *(group for group in kept if group != ours))


def _groups_that_are_there(api: Api, before: AwsConfig | None) -> tuple[str, ...]:
    named = before.settings.security_groups if before else ()
    if not named:
        return ()
    filters = [{"Name": "group-id", "Values": list(named)}]
    with api.doing("looking at the security groups that the settings name"):
        found = api.pages("ec2", "describe_security_groups", "SecurityGroups", Filters=filters)
    there = {each["GroupId"] for each in found}
    return tuple(group for group in named if group in there)


def _group_names(decided: Decided) -> tuple[str, str]:
    return decided.workers_group, decided.master_group


def _changes(before: AwsConfig, after: AwsConfig) -> list[str]:
    told = []
    for old, new in ((before.settings, after.settings), (before, after)):
        for field in dataclasses.fields(old):
            was, now = getattr(old, field.name), getattr(new, field.name)
            if field.name != "settings" and was != now:
                told.append(f"{field.name}: {_plain(was)} becomes {_plain(now)}")
    return told


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {each}' for key, each in value.items())}}}"
    return str(value or "nothing")
