"""The bucket: private, encrypted, over TLS alone, without versions, and rid of broken uploads.

A bucket is made first and tagged after it, so between the two it does not say whose it is. That is
why the claim (claim.py) is written before: a bucket without any tag is ours only if this home had
meant to make it. What others set beside what is wanted here stays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from eva.adapters.aws.account.api import Api
from eva.adapters.aws.account.names import tags
from eva.adapters.aws.account.ownership import ForeignResourceError, check_ours
from eva.adapters.aws.account.plan import Action, Step, Work, compared
from eva.adapters.aws.account.policies import Policy

KIND = "bucket"
_ABSENT = frozenset({"404", "NoSuchBucket"})
_NOT_OURS = frozenset({"301", "PermanentRedirect", "403", "AccessDenied"})
_FIRST_REGION = "us-east-1"  # the only one that must not be named, and is not
_UPLOAD_DAYS = 7
_PRIVATE = dict.fromkeys(
    ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True
)
_ENCRYPTED = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
_LIFECYCLE_RULE = {
    "ID": "eva-broken-uploads",
    "Status": "Enabled",
    "Filter": {"Prefix": ""},
    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": _UPLOAD_DAYS},
}


@dataclass(frozen=True, slots=True)
class Aspect:
    """One thing about a bucket. `mended` is what to set, given what is there; None: all is well."""

    told: str
    get: str
    absent: str
    put: str
    mended: Callable[[Mapping[str, Any]], dict[str, Any] | None]


def aspects(policy: Policy | None) -> tuple[Aspect, ...]:
    """`policy` admits TLS alone; None for an emulator that speaks plain HTTP."""
    tls = Aspect(
        "over TLS alone",
        "get_bucket_policy",
        "NoSuchBucketPolicy",
        "put_bucket_policy",
        partial(_with_policy, policy or {}),
    )
    return (*_ASPECTS, *([tls] if policy else []))


class Buckets:
    """`claimed` says that this home had meant to make the bucket of this name."""

    def __init__(self, api: Api, cluster: str, claimed: Callable[[str], bool]) -> None:
        self._api, self._cluster, self._claimed = api, cluster, claimed

    def exists(self, name: str) -> bool:
        with self._api.doing(f"looking at {KIND} {name}"):
            said = self._api.refusal("s3", "head_bucket", _ABSENT | _NOT_OURS, Bucket=name)
        if said in _NOT_OURS:
            raise ForeignResourceError(
                f"{KIND} {name} is somebody else's, in another region, or closed to you ({said}): "
                "name another with --bucket"
            )
        return said is None

    def step(self, name: str, policy: Policy | None) -> Step:
        wanted = aspects(policy)
        mark = Work(f"tagging {KIND} {name}", partial(self._mark, name))
        if not self.exists(name):
            create = Work(f"creating {KIND} {name}", partial(self._create, name))
            told = tuple(each.told for each in wanted)
            puts = tuple(self._setting(name, each, each.mended({})) for each in wanted)
            return Step(Action.CREATE, KIND, name, told, (create, mark, *filter(None, puts)))
        self._check_region(name)
        work = [] if self.check_mark(name) else [mark]
        details = []
        for each in wanted:
            setting = self._setting(name, each, each.mended(self._state(name, each)))
            if setting is not None:
                details.append(f"is not {each.told}" if not work else each.told)
                work.append(setting)
        return compared(KIND, name, tuple(details), tuple(work))

    # Looking

    def _check_region(self, name: str) -> None:
        with self._api.doing(f"looking where {KIND} {name} is"):
            found = self._api.look("s3", "get_bucket_location", Bucket=name)
        region = found.get("LocationConstraint") or _FIRST_REGION
        if region != self._api.region:
            raise ForeignResourceError(
                f"{KIND} {name} is in {region}, not in {self._api.region}: name another with "
                "--bucket, or that region with --region"
            )

    def check_mark(self, name: str) -> bool:
        """Whether it is tagged as ours; False if it is ours and has no tag yet."""
        with self._api.doing(f"looking at the tags of {KIND} {name}"):
            found = self._api.find("s3", "get_bucket_tagging", {"NoSuchTagSet"}, Bucket=name)
        if found is None and self._claimed(name):
            return False
        check_ours(KIND, name, (found or {}).get("TagSet", ()), self._cluster)
        return True

    def _state(self, name: str, aspect: Aspect) -> Mapping[str, Any]:
        with self._api.doing(f"looking whether {KIND} {name} is as it should be"):
            return self._api.find("s3", aspect.get, {aspect.absent}, Bucket=name) or {}

    # Doing

    def _create(self, name: str) -> None:
        region = self._api.region
        where = {"CreateBucketConfiguration": {"LocationConstraint": region}}
        self._api.change(
            "s3", "create_bucket", Bucket=name, **({} if region == _FIRST_REGION else where)
        )

    def _mark(self, name: str) -> None:
        marked = {"TagSet": tags(self._cluster)}
        self._api.change("s3", "put_bucket_tagging", Bucket=name, Tagging=marked)

    def _setting(self, name: str, aspect: Aspect, asked: dict[str, Any] | None) -> Work | None:
        if asked is None:
            return None
        what = f"setting {KIND} {name}: {aspect.told}"
        return Work(what, partial(self._api.change, "s3", aspect.put, Bucket=name, **asked))


def _private(found: Mapping[str, Any]) -> dict[str, Any] | None:
    if found.get("PublicAccessBlockConfiguration") == _PRIVATE:
        return None
    return {"PublicAccessBlockConfiguration": _PRIVATE}


def _encrypted(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """Any encryption by default will do: who chose a key of their own meant it."""
    if found.get("ServerSideEncryptionConfiguration", {}).get("Rules"):
        return None
    return {"ServerSideEncryptionConfiguration": _ENCRYPTED}


def _unversioned(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """Checkpoints are replaced all day; kept versions of them would be paid for."""
    if found.get("Status") != "Enabled":
        return None
    return {"VersioningConfiguration": {"Status": "Suspended"}}


def _with_lifecycle(found: Mapping[str, Any]) -> dict[str, Any] | None:
    rules = list(found.get("Rules", ()))
    others = [rule for rule in rules if rule.get("ID") != _LIFECYCLE_RULE["ID"]]
    keys = ("Status", "AbortIncompleteMultipartUpload")
    for rule in rules:
        if rule not in others and all(rule.get(key) == _LIFECYCLE_RULE[key] for key in keys):
            return None
    return {"LifecycleConfiguration": {"Rules": [*others, _LIFECYCLE_RULE]}}


def _with_policy(wanted: Policy, found: Mapping[str, Any]) -> dict[str, Any] | None:
    there = json.loads(found["Policy"]) if "Policy" in found else {"Statement": []}
    ours = {each["Sid"]: each for each in wanted["Statement"]}
    others = [each for each in there["Statement"] if each.get("Sid") not in ours]
    kept = {each["Sid"]: each for each in there["Statement"] if each.get("Sid") in ours}
    if kept == ours:
        return None
    return {"Policy": json.dumps({**wanted, "Statement": [*others, *ours.values()]})}


_ASPECTS = (
    Aspect(
        "closed to the public",
        "get_public_access_block",
        "NoSuchPublicAccessBlockConfiguration",
        "put_public_access_block",
        _private,
    ),
    Aspect(
        "encrypted",
        "get_bucket_encryption",
        "ServerSideEncryptionConfigurationNotFoundError",
        "put_bucket_encryption",
        _encrypted,
    ),
    Aspect(
        "no versions",
        "get_bucket_versioning",
        "NoSuchBucketVersioning",
        "put_bucket_versioning",
        _unversioned,
    ),
    Aspect(
        f"drops broken uploads after {_UPLOAD_DAYS} days",
        "get_bucket_lifecycle_configuration",
        "NoSuchLifecycleConfiguration",
        "put_bucket_lifecycle_configuration",
        _with_lifecycle,
    ),
)
