"""`eva aws` as a user starts it."""

from __future__ import annotations

from typing import Any

import pytest

from eva.adapters.aws import config_file
from eva.adapters.aws.account.target import Target
from tests.support.cloud_proxy import refusal
from tests.support.moto_server import REGION
from tests.unit.adapters.aws.account.bench import ACCOUNT, BUCKET, NAMES, AccountBench
from tests.unit.cli.conftest import Eva, Outcome, eva

__all__ = ["eva"]  # a fixture by being here


@pytest.fixture
def aws(eva: Eva, account: AccountBench, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`aws("init", "--yes")` for the account, in its home, over clients that are there already."""
    monkeypatch.setattr(Target, "api", lambda _target: account.api)
    return started(eva, account)


def started(eva: Eva, account: AccountBench) -> Any:

    def run(*words: str, **how: Any) -> Outcome:
        command, *rest = words
        where = ("--home", str(account.home), "--endpoint-url", account.endpoint)
        return eva("aws", command, *where, *rest, **how)

    return run


def test_init_shows_its_plan_and_asks(account: AccountBench, aws: Any) -> None:
    outcome = aws("init", columns=200)
    assert outcome.code == 2, "nobody could answer"
    assert "say -y to mean it" in outcome.err
    assert f"Account {ACCOUNT}" in outcome.out
    for line in (
        f"+ create  security group       {NAMES[0]}",
        f"+ create  bucket               {BUCKET}",
    ):
        assert " ".join(line.split()) in " ".join(outcome.out.split())
    assert "admits nobody" in outcome.out
    assert "Do this in account" in outcome.err
    assert account.groups() == {}


def test_init_and_destroy_and_twice(account: AccountBench, aws: Any) -> None:
    outcome = aws("init", "--yes")
    assert outcome.code == 0
    assert "Next: eva up --cloud aws" in outcome.out
    assert f"done: create bucket {BUCKET}" in outcome.err
    assert config_file.read(account.path).settings.region == REGION
    again = aws("init")
    assert (again.code, "Nothing to do" in again.out) == (0, True)
    refused = aws("destroy", "--yes")
    assert refused.code == 2
    assert f"bucket {BUCKET} is not empty (with 1 objects" in refused.err
    assert account.groups()
    gone = aws("destroy", "--yes", "--delete-data")
    assert (gone.code, "All of it is gone" in gone.out) == (0, True)
    assert account.is_empty()
    twice = aws("destroy", "--yes")
    assert (twice.code, "Nothing bears the tag" in twice.out) == (0, True)


def test_a_dry_run_does_nothing(account: AccountBench, aws: Any) -> None:
    assert aws("init", "--dry-run").code == 0
    assert account.groups() == {}
    aws("init", "--yes")
    assert aws("destroy", "--dry-run").code == 0
    assert set(account.groups()) == set(NAMES)


def test_the_buckets_name_is_asked_for_before_data_goes(account: AccountBench, aws: Any) -> None:
    aws("init", "--yes")
    wrong = aws("destroy", stdin="y\nyes\n")
    assert (wrong.code, account.bucket_names()) == (1, {BUCKET})
    assert "Type its name to delete them" in wrong.err
    assert aws("destroy", stdin=f"y\n{BUCKET}\n").code == 0
    assert account.is_empty()


def test_json_says_what_was_planned_and_done(aws: Any, account: AccountBench) -> None:
    planned = aws("init", "--dry-run", "--json").json
    assert (planned["done"], planned["account"], planned["bucket"]) == (False, ACCOUNT, BUCKET)
    made = aws("init", "--yes", "--json").json
    assert made["done"] is True
    assert made["steps"] == planned["steps"]
    assert {"action": "create", "kind": "role", "name": NAMES[0]}.items() <= made["steps"][
        4
    ].items()
    assert aws("destroy", "--yes", "--delete-data", "--json").json["done"] is True


def test_a_name_that_is_in_use_is_refused_until_it_is_said_to_be_ours(
    account: AccountBench, aws: Any, tmp_path: Any
) -> None:
    aws("init", "--yes")
    outcome = aws("init", "--yes", "--home", str(tmp_path / "second"))
    assert outcome.code == 2
    assert "end each other's instances" in outcome.err
    assert aws("init", "--yes", "--adopt", "--home", str(tmp_path / "second")).code == 0


def test_policies_are_printed_filled_in(account: AccountBench, aws: Any) -> None:
    outcome = aws("policies")
    assert (outcome.code, outcome.err) == (0, "")
    assert "${" not in outcome.out
    vpc = account.default_vpc()
    for word in (f":vpc/{vpc}", f"arn:aws:s3:::{BUCKET}", '/eva:cluster": "main"'):
        assert word in outcome.out
    aws("init", "--yes")
    (role,) = account.client("iam").list_role_policies(RoleName=NAMES[1])["PolicyNames"]
    given = account.client("iam").get_role_policy(RoleName=NAMES[1], PolicyName=role)
    assert aws("policies", "master").json == given["PolicyDocument"]
    wrong = aws("policies", "administrater")
    assert (wrong.code, "did you mean 'administrator'?" in wrong.err) == (2, True)


def test_policies_are_printed_for_whoever_may_do_nothing_yet(
    account: AccountBench, aws: Any
) -> None:
    closed = refusal("UnauthorizedOperation", 403)
    account.proxy.script.decide = lambda action: None if action == "GetCallerIdentity" else closed
    outcome = aws("policies")
    assert outcome.code == 0
    assert f":{ACCOUNT}:vpc/*" in outcome.out
    assert "note: any VPC is allowed" in outcome.err


@pytest.mark.parametrize(
    ("words", "say"),
    [
        (("--cluster", "no name!"), "'no name!' is no name"),
        (("--subnet", "us-east-1a"), "'us-east-1a' is not ZONE=ID"),
        (("--image", "ubuntu"), "'ubuntu' is no image"),
    ],
)
def test_wrong_words_are_one_line(aws: Any, words: tuple[str, ...], say: str) -> None:
    outcome = aws("init", *words)
    assert outcome.code == 2
    assert say in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1


def test_what_stands_in_the_way_is_one_line_with_its_remedy(
    eva: Eva, account: AccountBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws = started(eva, account)
    account.proxy.script.next["DescribeVpcs"].append(refusal("UnauthorizedOperation", 403))
    denied = aws("init")
    assert denied.code == 1
    assert "looking at the network: ec2 DescribeVpcs failed (UnauthorizedOperation" in denied.err
    assert "eva aws policies" in denied.err
    home = ("--home", str(account.home))
    mistyped = eva("aws", "init", *home, "--region", "us-east1")
    assert mistyped.code == 2
    assert "no region that this boto3 knows; did you mean 'us-east-1'?" in mistyped.err
    monkeypatch.setattr("eva.adapters.aws.account.api.time.sleep", lambda _s: None)
    down = eva("aws", "init", *home, "--endpoint-url", "http://127.0.0.1:9")
    assert down.code == 1
    assert "EndpointConnectionError" in down.err
    assert "check the endpoint" in down.err
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    nobody = aws("init")
    assert nobody.code == 1
    assert "NoCredentialsError" in nobody.err
    assert "set AWS_PROFILE" in nobody.err
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert "set AWS_PROFILE" in aws("init").err
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    nowhere = aws("init")
    assert (nowhere.code, "--region: is not set anywhere" in nowhere.err) == (2, True)
    for outcome in (denied, mistyped, down, nobody, nowhere):
        assert len(outcome.err.strip().splitlines()) == 1
        assert "Traceback" not in outcome.err
