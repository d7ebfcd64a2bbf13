from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from eva.adapters.aws import config_file
from eva.adapters.aws.account.bucket import Buckets
from eva.adapters.aws.account.claim import FILE as CLAIM_FILE
from eva.adapters.aws.account.ownership import ForeignResourceError
from eva.adapters.aws.account.plan import Action, Plan, Step
from eva.adapters.aws.account.policies import text_of
from eva.adapters.aws.account.target import Wishes
from eva.adapters.aws.names import CLUSTER_TAG
from eva.model.errors import EvaError, InputError, OperatorError
from tests.support.cloud_proxy import LOST_REPLY, THROTTLED, refusal
from tests.support.moto_server import REGION
from tests.support.published_image import PUBLISHED_IMAGE, publish_image
from tests.unit.adapters.aws.account.bench import (
    ACCOUNT,
    BUCKET,
    NAMES,
    SPOT_ROLE,
    AccountBench,
)

WORKERS, MASTER = NAMES
TAG = [{"Key": CLUSTER_TAG, "Value": "main"}]


def actions(plan: Plan) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for step in plan.steps:
        found.setdefault(step.action.value, []).append(f"{step.kind} {step.name}")
    return found


def test_an_empty_account_gets_what_a_cluster_needs(account: AccountBench) -> None:
    account.init()
    groups = account.groups()
    assert set(groups) == set(NAMES)
    assert groups[WORKERS]["IpPermissions"] == []
    ways = groups[MASTER]["IpPermissions"]
    assert sorted((way["FromPort"], way["ToPort"]) for way in ways) == [(7333, 7333), (7334, 7334)]
    admitted = {pair["GroupId"] for way in ways for pair in way["UserIdGroupPairs"]}
    assert admitted == {groups[WORKERS]["GroupId"]}
    assert not any(way["IpRanges"] or way["Ipv6Ranges"] for way in ways)
    made = account.everything()
    assert set(made["roles"]) == {*NAMES, SPOT_ROLE}
    assert made["profiles"] == {name: [TAG, [name]] for name in NAMES}
    bucket = made["buckets"][BUCKET]
    assert bucket["tags"] == TAG
    assert set(bucket["private"].values()) == {True}
    assert bucket["versions"] is None
    (uploaded,) = bucket["objects"]
    config = config_file.read(account.path)
    settings = config.settings
    assert (settings.cluster, settings.region, config.account) == ("main", REGION, ACCOUNT)
    assert (settings.image, settings.root_device) == (PUBLISHED_IMAGE, "/dev/sda1")
    assert config.image_parameter.startswith("/aws/service/deeplearning/ami/x86_64/")
    assert settings.security_groups == (groups[WORKERS]["GroupId"],)
    assert config.master_security_group == groups[MASTER]["GroupId"]
    assert (settings.instance_profile, config.master_instance_profile) == NAMES
    assert settings.software == f"s3://{BUCKET}/{uploaded}"
    assert config.worker_ports == (7333, 7334)
    assert len(settings.usable_zones) == 6
    assert config.storage.startswith(f"s3://{BUCKET}/storage?")


def test_the_second_plan_says_that_nothing_is_to_be_done(account: AccountBench) -> None:
    account.init()
    before = account.everything()
    again = account.planned()
    assert again.plan.pending == ()
    assert {step.action for step in again.plan.steps} == {Action.KEEP}
    assert again.adopted == ()
    account.init()
    assert account.everything() == before


def test_planning_changes_nothing(account: AccountBench) -> None:
    account.planned()
    assert account.groups() == {}
    assert account.role_names() == set()
    assert account.bucket_names() == set()
    assert list(account.home.iterdir()) == []


def test_a_reply_that_was_lost_is_said_and_the_next_run_takes_it_up(account: AccountBench) -> None:
    for action in ("CreateSecurityGroup", "CreateRole", "AddRoleToInstanceProfile"):
        account.proxy.script.next[action].append(LOST_REPLY)
        with pytest.raises(EvaError, match=f"{action} failed"):
            account.init()
    account.init()
    assert set(account.everything()["groups"]) == set(NAMES)
    assert account.planned().plan.pending == ()


# What is not ours


def foreign_group(account: AccountBench, tags: list[dict[str, str]]) -> Any:
    marked = [{"ResourceType": "security-group", "Tags": tags}] if tags else []
    return account.client("ec2").create_security_group(
        GroupName=WORKERS,
        Description="theirs",
        VpcId=account.default_vpc(),
        TagSpecifications=marked,
    )


def foreign_role(account: AccountBench, tags: list[dict[str, str]]) -> Any:
    return account.client("iam").create_role(
        RoleName=WORKERS, AssumeRolePolicyDocument='{"Statement": []}', Tags=tags
    )


def foreign_profile(account: AccountBench, tags: list[dict[str, str]]) -> Any:
    return account.client("iam").create_instance_profile(InstanceProfileName=MASTER, Tags=tags)


def foreign_bucket(account: AccountBench, tags: list[dict[str, str]]) -> Any:
    account.client("s3").create_bucket(Bucket=BUCKET)
    if tags:
        account.client("s3").put_bucket_tagging(Bucket=BUCKET, Tagging={"TagSet": tags})


@pytest.mark.parametrize("tags", [[], [{"Key": CLUSTER_TAG, "Value": "another"}]])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (foreign_group, WORKERS),
        (foreign_role, WORKERS),
        (foreign_profile, MASTER),
        (foreign_bucket, BUCKET),
    ],
)
def test_what_lacks_our_tag_is_refused_and_left_alone(
    account: AccountBench, make: Any, name: str, tags: list[dict[str, str]]
) -> None:
    make(account, tags)
    groups, roles = account.groups(), account.role_names()
    with pytest.raises(ForeignResourceError, match=name) as caught:
        account.init()
    assert CLUSTER_TAG in str(caught.value)
    assert (account.groups(), account.role_names()) == (groups, roles)
    assert not account.path.exists()
    destruction = account.destroy()
    assert not [step for step in destruction.plan.steps if step.action is Action.REMOVE]
    assert (account.groups(), account.role_names()) == (groups, roles)
    if make is foreign_bucket:
        assert account.bucket_names() == {BUCKET}


def test_what_another_home_made_is_told_before_it_is_taken_over(account: AccountBench) -> None:
    account.init()
    account.path.unlink()
    assert account.planned().adopted == (), "the claim says that it was this home"
    (account.home / CLAIM_FILE).unlink()
    adopted = account.planned().adopted
    assert {f"security group {WORKERS}", f"bucket {BUCKET}"} <= set(adopted)


# Drift


def test_a_way_in_that_somebody_opened_is_shown_and_closed(account: AccountBench) -> None:
    account.init()
    groups = account.groups()
    ssh = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    anybody = {**ssh, "IpRanges": [{"CidrIp": "0.0.0.0/0"}], "Ipv6Ranges": [{"CidrIpv6": "::/0"}]}
    for group in groups.values():
        account.client("ec2").authorize_security_group_ingress(
            GroupId=group["GroupId"], IpPermissions=[anybody]
        )
    planned = account.planned()
    pending = {step.name: step for step in planned.plan.pending}
    assert set(pending) == set(NAMES)
    for step in pending.values():
        assert step.action is Action.CHANGE
        assert (
            "closes what somebody opened: tcp 22 from 0.0.0.0/0, tcp 22 from ::/0" in step.details
        )
    account.init()
    assert account.groups() == groups


def test_a_way_in_that_somebody_closed_is_opened_again(account: AccountBench) -> None:
    account.init()
    wanted = account.everything()
    group = account.groups()[MASTER]
    account.client("ec2").revoke_security_group_ingress(
        GroupId=group["GroupId"], IpPermissions=group["IpPermissions"][:1]
    )
    (step,) = account.planned().plan.pending
    assert (step.action, step.name) == (Action.CHANGE, MASTER)
    account.init()
    assert account.everything() == wanted


def test_a_group_that_was_deleted_is_made_again_and_named_in_the_settings(
    account: AccountBench,
) -> None:
    account.init()
    wanted = account.everything()
    for name in (MASTER, WORKERS):
        account.client("ec2").delete_security_group(GroupId=account.groups()[name]["GroupId"])
    planned = actions(account.planned().plan)
    assert planned["create"] == [f"security group {WORKERS}", f"security group {MASTER}"]
    assert planned["change"] == [f"settings {account.path}"]
    account.init()
    assert account.everything() == wanted


def test_roles_and_bucket_that_were_changed_are_mended_and_additions_stay(
    account: AccountBench,
) -> None:
    account.init()
    iam, s3 = account.client("iam"), account.client("s3")
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::theirs/*"}
    theirs_alone = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_role_policy(RoleName=WORKERS, PolicyName="eva", PolicyDocument=theirs_alone)
    iam.put_role_policy(RoleName=WORKERS, PolicyName="theirs", PolicyDocument=theirs_alone)
    nobody = {"Effect": "Deny", "Principal": "*", "Action": "sts:AssumeRole"}
    iam.update_assume_role_policy(
        RoleName=MASTER,
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [nobody]}),
    )
    s3.delete_public_access_block(Bucket=BUCKET)
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    theirs = {"ID": "theirs", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}}
    expire = {**theirs, "Expiration": {"Days": 1}}
    s3.put_bucket_lifecycle_configuration(Bucket=BUCKET, LifecycleConfiguration={"Rules": [expire]})
    changed = actions(account.planned().plan)["change"]
    assert changed == [f"role {WORKERS}", f"role {MASTER}", f"bucket {BUCKET}"]
    account.init()
    made = account.everything()
    policies = made["roles"][WORKERS]["policies"]
    assert len(policies["eva"]["Statement"]) > 1
    assert policies["theirs"]["Statement"] == [statement]
    bucket = made["buckets"][BUCKET]
    assert bucket["versions"] == "Suspended"
    assert [rule["ID"] for rule in bucket["lifecycle"]] == ["theirs", "eva-broken-uploads"]
    assert account.planned().plan.pending == ()


def test_a_bucket_is_closed_to_plain_http_and_keeps_what_others_said_of_it(
    account: AccountBench,
) -> None:
    """Apart from init, which leaves this out where the endpoint is plain HTTP, as moto's is."""
    s3 = account.client("s3")
    tls = json.loads(text_of("bucket").replace("${PARTITION}", "aws").replace("${BUCKET}", BUCKET))
    buckets = Buckets(account.api, "main", lambda name: False)

    def step() -> Step:
        return buckets.step(BUCKET, tls)

    for work in step().work:
        work.do()
    assert step().action is Action.KEEP
    theirs = {"Sid": "Theirs", "Effect": "Deny", "Principal": "*", "Action": "s3:GetObject"}
    theirs["Resource"] = f"arn:aws:s3:::{BUCKET}/secret/*"
    s3.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps({**tls, "Statement": [theirs]}))
    mending = step()
    assert (mending.action, mending.details) == (Action.CHANGE, ("is not over TLS alone",))
    for work in mending.work:
        work.do()
    statements = json.loads(s3.get_bucket_policy(Bucket=BUCKET)["Policy"])["Statement"]
    assert [each["Sid"] for each in statements] == ["Theirs", "EvaTlsOnly"]
    assert statements[1]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert step().action is Action.KEEP


# Settings


def test_what_people_changed_in_the_settings_stays(account: AccountBench) -> None:
    account.init()
    config = config_file.read(account.path)
    own = account.client("ec2").create_security_group(
        GroupName="ours-too", Description="-", VpcId=account.default_vpc()
    )["GroupId"]
    settings = replace(
        config.settings,
        root_volume_gib=200,
        public_address=False,
        calls_per_second=2.0,
        security_groups=(*config.settings.security_groups, own),
        software="",
    )
    changed = replace(config, settings=settings)
    config_file.write(account.path, changed)
    assert account.planned().plan.pending == ()
    account.init()
    assert config_file.read(account.path) == changed


def test_an_image_stays_until_a_newer_one_is_asked_for(account: AccountBench) -> None:
    account.init()
    publish_image(account.proxy, "ami-785db401")
    assert account.planned().plan.pending == ()
    (step,) = account.planned(Wishes(image="latest")).plan.pending
    assert step.details == (f"image: {PUBLISHED_IMAGE} becomes ami-785db401",)
    account.init(Wishes(image="latest"))
    assert config_file.read(account.path).settings.image == "ami-785db401"
    account.init(Wishes(image=PUBLISHED_IMAGE))
    config = config_file.read(account.path)
    assert (config.settings.image, config.image_parameter) == (PUBLISHED_IMAGE, "")


def test_an_image_that_was_taken_back_is_replaced(account: AccountBench) -> None:
    account.init()
    config = config_file.read(account.path)
    gone = replace(config, settings=replace(config.settings, image="ami-00000000"))
    config_file.write(account.path, gone)
    account.init()
    assert config_file.read(account.path).settings.image == PUBLISHED_IMAGE


def test_named_subnets_are_used_and_kept(account: AccountBench) -> None:
    ec2 = account.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24", AvailabilityZone="us-east-1b")[
        "Subnet"
    ]["SubnetId"]
    account.init(Wishes(subnets={"us-east-1b": subnet}))
    assert config_file.read(account.path).settings.subnets == {"us-east-1b": subnet}
    assert {group["VpcId"] for group in account.groups().values()} == {vpc}
    assert account.planned().plan.pending == ()
    with pytest.raises(InputError, match="is in us-east-1b, not in us-east-1a"):
        account.planned(Wishes(subnets={"us-east-1a": subnet}))


def test_profiles_that_are_there_already_are_used_and_no_role_is_made(
    account: AccountBench,
) -> None:
    iam = account.client("iam")
    iam.create_role(RoleName="theirs", AssumeRolePolicyDocument='{"Statement": []}')
    iam.create_instance_profile(InstanceProfileName="their-profile")
    with pytest.raises(InputError, match="their-profile holds no role"):
        account.planned(Wishes(workers_profile="their-profile"))
    iam.add_role_to_instance_profile(InstanceProfileName="their-profile", RoleName="theirs")
    wishes = Wishes(workers_profile="their-profile", master_profile="their-profile")
    account.init(wishes)
    assert account.role_names() == {"theirs", SPOT_ROLE}
    config = config_file.read(account.path)
    assert config.settings.instance_profile == config.master_instance_profile == "their-profile"
    assert account.planned().plan.pending == ()
    account.destroy()
    assert account.role_names() == {"theirs", SPOT_ROLE}
    assert account.profile_names() == {"their-profile"}


def test_the_master_may_pass_on_the_role_of_a_profile_that_somebody_made(
    account: AccountBench,
) -> None:
    iam = account.client("iam")
    role = iam.create_role(RoleName="theirs", AssumeRolePolicyDocument='{"Statement": []}')
    iam.create_instance_profile(InstanceProfileName="their-profile")
    iam.add_role_to_instance_profile(InstanceProfileName="their-profile", RoleName="theirs")
    account.init(Wishes(workers_profile="their-profile"))
    policy = account.everything()["roles"][MASTER]["policies"]["eva"]
    (passing,) = [each for each in policy["Statement"] if each["Action"] == "iam:PassRole"]
    assert passing["Resource"] == role["Role"]["Arn"]


def test_a_home_is_of_one_cluster_region_and_account(account: AccountBench) -> None:
    account.init()
    for wishes in (Wishes(cluster="second"), Wishes(region="eu-west-1")):
        with pytest.raises(InputError, match="use another --home"):
            account.target(wishes)
    config = config_file.read(account.path)
    config_file.write(account.path, replace(config, account="000000000000"))
    with pytest.raises(OperatorError, match="is of account 000000000000"):
        account.planned()


def test_no_default_vpc_is_said_with_its_remedy(account: AccountBench) -> None:
    ec2 = account.client("ec2")
    for subnet in ec2.describe_subnets()["Subnets"]:
        ec2.delete_subnet(SubnetId=subnet["SubnetId"])
    with pytest.raises(OperatorError, match="--subnet ZONE=ID"):
        account.planned()
    ec2.delete_vpc(VpcId=account.default_vpc())
    with pytest.raises(OperatorError, match="aws ec2 create-default-vpc"):
        account.planned()


# Failing calls


def test_throttled_calls_are_made_again_more_slowly(account: AccountBench) -> None:
    account.proxy.script.next["GetRole"].extend([THROTTLED] * 3)
    account.proxy.script.next["CreateRole"].extend([THROTTLED] * 3)
    account.init()
    assert len(account.pauses) == 6
    assert account.planned().plan.pending == ()


def test_throttling_that_does_not_end_is_said(account: AccountBench) -> None:
    account.proxy.script.decide = lambda action: THROTTLED if action == "GetRole" else None
    with pytest.raises(EvaError, match=r"iam GetRole failed .*ask again more slowly"):
        account.planned()


def test_a_call_that_is_not_allowed_is_named_with_what_to_do(account: AccountBench) -> None:
    account.proxy.script.next["CreateRole"].append(refusal("AccessDenied", 403))
    with pytest.raises(OperatorError) as caught:
        account.init()
    text = str(caught.value)
    assert text.startswith(f"creating role {WORKERS}: iam CreateRole failed (AccessDenied")
    assert "eva aws policies" in text
    account.init()
    assert account.planned().plan.pending == ()


def test_what_is_too_new_to_be_known_is_waited_for(account: AccountBench) -> None:
    account.proxy.script.next["PutRolePolicy"].append(refusal("NoSuchEntity", 404))
    account.proxy.script.next["AuthorizeSecurityGroupIngress"].append(
        refusal("InvalidGroup.NotFound")
    )
    account.init()
    assert len(account.pauses) == 2
