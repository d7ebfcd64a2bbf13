"""Whose account the credentials are for, and in which part of AWS it is."""

from __future__ import annotations

from dataclasses import dataclass

from eva.adapters.aws.account.api import Api


@dataclass(frozen=True, slots=True)
class Account:
    """`partition` is the second part of its ARNs: aws, aws-cn, aws-us-gov."""

    id: str
    partition: str
    caller: str

    @property
    def dns_suffix(self) -> str:
        return "amazonaws.com.cn" if self.partition == "aws-cn" else "amazonaws.com"

    def role_arn(self, path: str, name: str) -> str:
        return f"arn:{self.partition}:iam::{self.id}:role{path}{name}"

    def profile_arn(self, path: str, name: str) -> str:
        return f"arn:{self.partition}:iam::{self.id}:instance-profile{path}{name}"


def account_of(api: Api) -> Account:
    with api.doing("finding out whose account this is"):
        found = api.look("sts", "get_caller_identity")
    return Account(found["Account"], found["Arn"].split(":")[1], found["Arn"])
