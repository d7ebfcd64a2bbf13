"""What the audit asks of AWS, compared with what the administrator's policy allows."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from eva.adapters.aws.account.identity import Account
from eva.adapters.aws.account.policies import Blanks, policy
from tests.support.moto_server import REGION
from tests.unit.adapters.aws.account.bench import ACCOUNT, BUCKET, AccountBench
from tests.unit.adapters.aws.account.estate import rent, write_journal
from tests.unit.adapters.aws.account.test_audit import ec2_elsewhere
from tests.unit.adapters.aws.account.test_commands import aws
from tests.unit.cli.conftest import eva

__all__ = ["aws", "ec2_elsewhere", "eva"]  # fixtures by being here


def test_it_changes_nothing_and_administrators_may_do_all_of_it(
    account: AccountBench, aws: Any, ec2_elsewhere: Any
) -> None:
    aws("init", "--yes")
    write_journal(account.home, "i-1")
    rent(account, "i-1")
    there = account.everything()
    allowed = _administrator()
    with _calls(account) as calls:
        aws("audit", "--all-clusters", "--all-regions")
    assert account.everything() == there
    assert {"ec2:DescribeRegions", "iam:ListRoleTags", "s3:GetBucketTagging"} <= calls
    assert all(call.split(":")[1].startswith(("Describe", "List", "Get")) for call in calls)
    assert sorted(call for call in calls if not _is_allowed(call, allowed)) == []
    assert not _is_allowed("ec2:RunInstances", allowed), "the check can fail"


_RENAMED = {"s3:ListBuckets": "s3:ListAllMyBuckets"}  # what a call is called in policies
_FREE = "sts:GetCallerIdentity"  # needs no permission


@contextmanager
def _calls(account: AccountBench) -> Iterator[set[str]]:
    """What the account's clients ask for, as actions of policies."""
    found: set[str] = set()

    def note(model: Any, **_: Any) -> None:
        call = f"{model.service_model.service_name}:{model.name}"
        found.add(_RENAMED.get(call, call))

    events = [account.api.client(name).meta.events for name in ("ec2", "iam", "s3", "sts")]
    for each in events:
        each.register("before-call", note)
    try:
        yield found
    finally:
        for each in events:
            each.unregister("before-call", note)


def _administrator() -> list[dict[str, Any]]:
    whose = Account(ACCOUNT, "aws", "arn:aws:iam::1:user/x")
    blanks = Blanks(whose, REGION, "main", BUCKET, "vpc-1", "arn:aws:iam::1:role/eva/x")
    statements: list[dict[str, Any]] = policy("administrator", blanks)["Statement"]
    return statements


def _is_allowed(call: str, statements: list[dict[str, Any]]) -> bool:
    """In any region and for any cluster: where no condition stands in the way."""
    named = [
        statement
        for statement in statements
        if any(fnmatch.fnmatch(call, action) for action in _listed(statement["Action"]))
        and "Condition" not in statement
    ]
    return call == _FREE or bool(named)


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
