"""Which cluster, in which region, of which account: from the command line, the file and the claim.

A home is of one cluster. Where the command line says otherwise than the file, that is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eva.adapters.aws import config_file
from eva.adapters.aws.account.api import Api
from eva.adapters.aws.account.claim import Claim, read_claim
from eva.adapters.aws.account.identity import Account
from eva.adapters.aws.account.names import Names
from eva.adapters.aws.config_file import AwsConfig
from eva.adapters.aws.connection import boto_session
from eva.adapters.aws.settings import AwsSettings
from eva.inputs.problems import did_you_mean
from eva.model.errors import InputError, OperatorError

DEFAULT_CLUSTER = "main"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What somebody asked for; empty is whatever it is already, or the usual."""

    cluster: str = ""
    region: str = ""
    endpoint: str = ""
    image: str = ""
    bucket: str = ""
    workers_profile: str = ""
    master_profile: str = ""
    subnets: Mapping[str, str] = field(default_factory=dict)
    software: bool = True


@dataclass(frozen=True, slots=True)
class Target:
    """`before` is the configuration that is there."""

    home: Path
    path: Path
    wishes: Wishes
    cluster: str
    region: str
    endpoint: str | None
    before: AwsConfig | None
    claim: Claim | None

    def api(self) -> Api:
        return Api(self.region, self.endpoint)

    @property
    def home_region(self) -> str:
        """Where this home's cluster is, also while it is looked for elsewhere."""
        return self.before.settings.region if self.before else self.region

    def begun_here(self, account: Account) -> bool:
        """Whether what bears the cluster's tag was made from this home."""
        if self.before is not None:
            return True
        claim = self.claim
        mine = (self.cluster, account.id, self.region)
        return claim is not None and (claim.cluster, claim.account, claim.region) == mine

    def bucket(self, account: Account) -> str:
        if self.wishes.bucket:
            return self.wishes.bucket
        if self.before is not None:
            return self.before.bucket
        if self.claim is not None and self.begun_here(account):
            return self.claim.bucket
        return Names(self.cluster, account.id).bucket

    def check_account(self, account: Account) -> None:
        if self.before is not None and self.before.account not in {"", account.id}:
            raise OperatorError(
                f"{self.path} is of account {self.before.account}, and the credentials are for "
                f"{account.id} ({account.caller}): set AWS_PROFILE, or use another --home"
            )


def find_target(home: Path, path: Path, wishes: Wishes, *, any_region: bool = False) -> Target:
    """`any_region` is for whoever only looks: also where the file is not of."""
    before = config_file.read(path) if path.exists() else None
    claim = read_claim(home)
    settings = before.settings if before else None
    _check_same("--cluster", wishes.cluster, settings.cluster if settings else "", path)
    if not any_region:
        _check_same("--region", wishes.region, settings.region if settings else "", path)
    cluster = (
        wishes.cluster
        or (settings.cluster if settings else "")
        or (claim.cluster if claim else "")
        or DEFAULT_CLUSTER
    )
    endpoint = wishes.endpoint or (settings.endpoint if settings else None)
    region = (
        wishes.region
        or (settings.region if settings else "")
        or (claim.region if claim and claim.cluster == cluster else "")
        or _usual_region()
    )
    AwsSettings(cluster, region, "any", ("any",))  # refuses names that are none
    if endpoint is None:
        _check_region(region)
    return Target(home, path, wishes, cluster, region, endpoint, before, claim)


def _check_same(option: str, wished: str, there: str, path: Path) -> None:
    if wished and there and wished != there:
        raise InputError.single(
            option, f"{wished!r} is not {there!r}, which {path} is of: use another --home for it"
        )


def _usual_region() -> str:
    region = boto_session().region_name
    if not region:
        raise InputError.single(
            "--region", "is not set anywhere: name one, such as us-east-1, or set AWS_REGION"
        )
    return str(region)


def _check_region(region: str) -> None:
    """A region that does not exist would only look like a network that is down."""
    session = boto_session()
    known = {
        each
        for partition in session.get_available_partitions()
        for each in session.get_available_regions("ec2", partition)
    }
    if region not in known:
        hint = did_you_mean(region, known)
        raise InputError.single(
            "--region",
            f"{region!r} is no region that this boto3 knows{hint}; update it if it is new",
        )
