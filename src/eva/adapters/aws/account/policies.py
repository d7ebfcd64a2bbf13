"""The policies in `policies/`, filled in for one cluster. They are files so that they can be read.

`administrator` is for whoever runs `eva aws init`, `destroy` and `audit`; the others are put in
place by it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any

from eva.adapters.aws.account.identity import Account

POLICIES = ("workers", "master", "trust", "bucket", "administrator")
Policy = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Blanks:
    """What the files leave open. `workers_role` is the ARN of the role that workers run under."""

    account: Account
    region: str
    cluster: str
    bucket: str
    vpc: str
    workers_role: str

    def filled(self) -> Mapping[str, str]:
        return {
            "PARTITION": self.account.partition,
            "DNS_SUFFIX": self.account.dns_suffix,
            "ACCOUNT": self.account.id,
            "REGION": self.region,
            "CLUSTER": self.cluster,
            "BUCKET": self.bucket,
            "VPC": self.vpc,
            "WORKERS_ROLE": self.workers_role,
        }


def policy(name: str, blanks: Blanks) -> Policy:
    """One of POLICIES. Nothing that fills it can hold a quotation mark: AWS's names have none."""
    found: Policy = json.loads(Template(text_of(name)).substitute(blanks.filled()))
    return found


def text_of(name: str) -> str:
    folder = files("eva.adapters.aws.account").joinpath("policies")
    return folder.joinpath(f"{name}.json").read_text("utf-8")
