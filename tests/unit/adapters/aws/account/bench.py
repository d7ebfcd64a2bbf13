"""An account to make things in: moto behind the proxy, and ways to look at what was made.

moto knows no Deep Learning images, so the proxy says which one is published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eva.adapters.aws import config_file
from eva.adapters.aws.account.api import Api
from eva.adapters.aws.account.claim import FILE as CLAIM_FILE
from eva.adapters.aws.account.destroy import Destroy, plan_destroy
from eva.adapters.aws.account.init import Init, plan_init
from eva.adapters.aws.account.target import Target, Wishes, find_target
from tests.support.cloud_proxy import CloudProxy
from tests.support.moto_server import REGION, direct_client
from tests.support.published_image import publish_image

ACCOUNT = "123456789012"
NAMES = ("eva-main-workers", "eva-main-master")
BUCKET = f"eva-main-{ACCOUNT}"
SPOT_ROLE = "AWSServiceRoleForspot"  # as moto calls it


@dataclass
class AccountBench:
    """`api` waits for nothing; it is made once, because clients are slow to make."""

    proxy: CloudProxy
    endpoint: str
    home: Path
    api: Api
    pauses: list[float] = field(default_factory=list)
    clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        if service not in self.clients:
            self.clients[service] = direct_client(service, self.proxy.upstream)
        return self.clients[service]

    @property
    def path(self) -> Path:
        return self.home / config_file.FILE_NAME

    def target(self, wishes: Wishes | None = None) -> Target:
        given = wishes or Wishes()
        usual = Wishes(region=REGION, endpoint=self.endpoint)
        merged = {
            name: getattr(given, name) or getattr(usual, name)
            for name in ("cluster", "region", "endpoint", "image", "bucket")
        }
        whole = Wishes(
            **merged,
            workers_profile=given.workers_profile,
            master_profile=given.master_profile,
            subnets=given.subnets,
            software=given.software,
        )
        return find_target(self.home, self.path, whole)

    def planned(self, wishes: Wishes | None = None) -> Init:
        return plan_init(self.api, self.target(wishes))

    def init(self, wishes: Wishes | None = None) -> Init:
        planned = self.planned(wishes)
        list(planned.plan.carry_out(self.api))
        return planned

    def destruction(self, wishes: Wishes | None = None, **how: bool) -> Destroy:
        return plan_destroy(self.api, self.target(wishes), **how)

    def destroy(self, wishes: Wishes | None = None, **how: bool) -> Destroy:
        planned = self.destruction(wishes, **how)
        list(planned.plan.carry_out(self.api))
        return planned

    def default_vpc(self) -> str:
        filters = [{"Name": "is-default", "Values": ["true"]}]
        return str(self.client("ec2").describe_vpcs(Filters=filters)["Vpcs"][0]["VpcId"])

    def groups(self) -> dict[str, Mapping[str, Any]]:
        found = self.client("ec2").describe_security_groups()["SecurityGroups"]
        return {each["GroupName"]: each for each in found if each["GroupName"] != "default"}

    def role_names(self) -> set[str]:
        return {each["RoleName"] for each in self.client("iam").list_roles()["Roles"]}

    def profile_names(self) -> set[str]:
        found = self.client("iam").list_instance_profiles()["InstanceProfiles"]
        return {each["InstanceProfileName"] for each in found}

    def bucket_names(self) -> set[str]:
        return {each["Name"] for each in self.client("s3").list_buckets()["Buckets"]}

    def is_empty(self) -> bool:
        """Nothing of the cluster is there, nor of this home's memory of it."""
        return (
            self.groups() == {}
            and self.role_names() <= {SPOT_ROLE}
            and self.profile_names() == set()
            and self.bucket_names() == set()
            and not self.path.exists()
            and not (self.home / CLAIM_FILE).exists()
        )

    def everything(self) -> dict[str, Any]:
        """What an init makes, with ids replaced by names, so that two runs can be compared."""
        groups = self.groups()
        ids = {each["GroupId"]: name for name, each in groups.items()}
        text = self.path.read_text() if self.path.exists() else ""
        for id_, name in ids.items():
            text = text.replace(id_, name)
        return {
            "groups": {name: _ways(each, ids) for name, each in groups.items()},
            "roles": {name: self._role(name) for name in sorted(self.role_names())},
            "profiles": {name: self._profile(name) for name in sorted(self.profile_names())},
            "buckets": {name: self._bucket(name) for name in sorted(self.bucket_names())},
            "settings": text,
        }

    def _role(self, name: str) -> Any:
        iam = self.client("iam")
        given = iam.list_role_policies(RoleName=name)["PolicyNames"]
        return {
            "tags": iam.list_role_tags(RoleName=name)["Tags"],
            "policies": {
                each: iam.get_role_policy(RoleName=name, PolicyName=each)["PolicyDocument"]
                for each in given
            },
        }

    def _profile(self, name: str) -> Any:
        found = self.client("iam").get_instance_profile(InstanceProfileName=name)
        profile = found["InstanceProfile"]
        return [profile["Tags"], [each["RoleName"] for each in profile["Roles"]]]

    def _bucket(self, name: str) -> Any:
        s3 = self.client("s3")
        asked = {"Bucket": name}
        return {
            "tags": s3.get_bucket_tagging(**asked)["TagSet"],
            "private": s3.get_public_access_block(**asked)["PublicAccessBlockConfiguration"],
            "encrypted": s3.get_bucket_encryption(**asked)["ServerSideEncryptionConfiguration"],
            "lifecycle": s3.get_bucket_lifecycle_configuration(**asked)["Rules"],
            "versions": s3.get_bucket_versioning(**asked).get("Status"),
            "objects": [each["Key"] for each in s3.list_objects_v2(**asked).get("Contents", ())],
        }


def _ways(group: Mapping[str, Any], ids: Mapping[str, str]) -> Any:
    ways = [
        (
            each["IpProtocol"],
            each.get("FromPort"),
            each.get("ToPort"),
            sorted(ids.get(pair["GroupId"], "?") for pair in each["UserIdGroupPairs"]),
            sorted(address["CidrIp"] for address in each["IpRanges"]),
        )
        for each in group["IpPermissions"]
    ]
    return {"tags": group.get("Tags"), "in": sorted(ways)}


@contextmanager
def new_account(proxy: CloudProxy, endpoint: str, api: Api, folder: Path) -> Iterator[AccountBench]:
    proxy.reset()
    publish_image(proxy)
    bench = AccountBench(proxy, endpoint, folder / "home", api)
    api.pause = bench.pauses.append
    bench.home.mkdir()
    yield bench
    for client in bench.clients.values():
        client.close()
