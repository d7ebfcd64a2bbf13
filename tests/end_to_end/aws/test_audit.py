"""`eva aws audit` beside a master that rents from moto: what it knows, and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from eva.adapters.aws.names import Mark
from eva.model.ids import InstanceId
from tests.end_to_end.aws.test_master_on_moto import JOB, SETTINGS, aws_cluster
from tests.support.moto_server import IMAGE, aws_credentials, direct_client, moto_address
from tests.unit.cli.conftest import Eva, eva

__all__ = ["aws_credentials", "eva", "moto_address"]  # fixtures by being here
pytestmark = pytest.mark.usefixtures("aws_credentials")


def leak(moto: tuple[str, int], journal: str) -> str:
    """An instance that this journal asked for, as its tags have it, and that it does not know."""
    client = direct_client("ec2", moto)
    made = client.run_instances(
        ImageId=IMAGE,
        InstanceType="g6.xlarge",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[
            {
                "ResourceType": "instance",
                "Tags": Mark(SETTINGS.cluster, journal).tags(InstanceId("i-99")),
            }
        ],
    )
    client.close()
    return str(made["Instances"][0]["InstanceId"])


def test_what_the_master_rents_is_known_and_what_it_does_not_know_is_left_over(
    tmp_path: Path, moto_address: tuple[str, int], eva: Eva
) -> None:
    with aws_cluster(tmp_path, moto_address) as (cluster, proxy):
        cluster.submit(JOB)
        cluster.until(lambda client: proxy.launches)
        endpoint = str(cluster.options.endpoint_url)
        audit = ("aws", "audit", "--json", "--home", str(tmp_path), "--endpoint-url", endpoint)
        rented = eva(*audit)
        (instance,) = [each for each in rented.json["found"] if each["kind"] == "instance"]
        assert (rented.code, instance["verdict"]) == (0, "known")
        assert instance["id"] == proxy.launches[0].ref
        assert instance["hourly_micros"] > 0
        leaked = leak(moto_address, rented.json["journal"])
        found = eva(*audit)
        assert found.code == 1
        assert [each["id"] for each in found.json["found"] if each["left_over"]] == [leaked]
