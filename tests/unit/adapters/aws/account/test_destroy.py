from __future__ import annotations

import pytest

from eva.adapters.aws.account.claim import FILE as CLAIM_FILE
from eva.adapters.aws.account.destroy import InstancesRunError
from eva.adapters.aws.account.plan import Action
from eva.adapters.aws.account.target import Wishes
from eva.adapters.aws.names import CLUSTER_TAG
from tests.support.published_image import PUBLISHED_IMAGE
from tests.unit.adapters.aws.account.bench import BUCKET, NAMES, AccountBench

WORKERS, MASTER = NAMES


def run_instance(account: AccountBench, cluster: str = "main") -> str:
    tags = [{"Key": CLUSTER_TAG, "Value": cluster}]
    made = account.client("ec2").run_instances(
        ImageId=PUBLISHED_IMAGE,
        InstanceType="t3.micro",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume")],
    )
    return str(made["Instances"][0]["InstanceId"])


def test_all_of_it_goes_and_twice_is_fine(account: AccountBench) -> None:
    account.init()
    assert not account.is_empty()
    account.destroy()
    assert account.is_empty()
    assert account.destroy().plan.pending == ()


def test_it_needs_no_settings_to_find_what_is_ours(account: AccountBench) -> None:
    account.init()
    account.path.unlink()
    (account.home / CLAIM_FILE).unlink()
    account.destroy()
    assert account.is_empty()


def test_it_waits_for_no_plan_that_was_never_finished(account: AccountBench) -> None:
    """What a crashed init left, the bucket without its tag included."""
    plan = account.planned().plan
    for work in (each for step in plan.steps for each in step.work):
        work.do()
        if work.what == f"creating bucket {BUCKET}":
            break
    account.destroy()
    assert account.is_empty()


def test_what_jobs_kept_is_weighed_first(account: AccountBench) -> None:
    account.init()
    s3 = account.client("s3")
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    for _ in range(2):
        s3.put_object(Bucket=BUCKET, Key="storage/jobs/j-1/model", Body=b"x" * 2_000_000)
    s3.delete_object(Bucket=BUCKET, Key="storage/jobs/j-1/model")
    s3.create_multipart_upload(Bucket=BUCKET, Key="storage/jobs/j-1/half")
    data = account.destruction().data
    assert data is not None
    assert (data.objects, data.uploads) == (4, 1)  # two versions, their deletion, the wheel
    assert "MB) and 1 unfinished uploads" in data.told()
    account.destroy()
    assert account.is_empty()


def test_it_is_refused_while_instances_are_there(account: AccountBench) -> None:
    account.init()
    instance = run_instance(account)
    with pytest.raises(InstancesRunError, match=f"{instance}.*eva down"):
        account.destruction()
    account.destroy(end_instances=True)
    assert account.is_empty()
    (group,) = account.client("ec2").describe_instances()["Reservations"]
    assert group["Instances"][0]["State"]["Name"] == "terminated"


def test_other_clusters_and_what_bears_no_tag_stay(account: AccountBench) -> None:
    account.init()
    other = Wishes(cluster="other")
    elsewhere = AccountBench(account.proxy, account.endpoint, account.home / "2", account.api)
    elsewhere.home.mkdir()
    elsewhere.init(other)
    theirs = run_instance(account, "other")
    vpc = account.default_vpc()
    account.client("ec2").create_security_group(GroupName="x", Description="x", VpcId=vpc)
    account.destroy()
    assert set(account.groups()) == {"eva-other-workers", "eva-other-master", "x"}
    assert account.profile_names() == {"eva-other-workers", "eva-other-master"}
    assert account.bucket_names() == {"eva-other-123456789012"}
    assert elsewhere.planned().plan.pending == ()
    with pytest.raises(InstancesRunError, match=theirs):
        elsewhere.destruction()


def test_leftover_volumes_and_interfaces_go_too(account: AccountBench) -> None:
    account.init()
    ec2 = account.client("ec2")
    tags = [{"Key": CLUSTER_TAG, "Value": "main"}]
    volume = ec2.create_volume(
        AvailabilityZone="us-east-1a",
        Size=8,
        TagSpecifications=[{"ResourceType": "volume", "Tags": tags}],
    )["VolumeId"]
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    interface = ec2.create_network_interface(
        SubnetId=subnet,
        TagSpecifications=[{"ResourceType": "network-interface", "Tags": tags}],
    )["NetworkInterface"]["NetworkInterfaceId"]
    removed = {step.name for step in account.destroy().plan.steps if step.action is Action.REMOVE}
    assert {volume, interface} <= removed
    assert ec2.describe_volumes()["Volumes"] == []
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == []
