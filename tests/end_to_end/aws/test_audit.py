"""`eva aws audit` beside a master that rents from moto: what it knows, and what it does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eva.adapters.aws.names import Mark
from eva.model.ids import InstanceId
from tests.end_to_end.aws.cluster import SETTINGS, aws_cluster
from tests.end_to_end.aws.test_master_on_moto import JOB
from tests.support.moto_server import IMAGE, aws_credentials, direct_client, moto_address

__all__ = ["aws_credentials", "moto_address"]  # fixtures by being here
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


def audited(home: Path, endpoint: str | None) -> tuple[int, Any]:
    """In a process of its own: moto writes on the standard output of this one."""
    words = ("aws", "audit", "--json", "--home", str(home), "--endpoint-url", str(endpoint))
    ended = subprocess.run(
        [sys.executable, "-c", "from eva.cli.main import main; main()", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def test_what_the_master_rents_is_known_and_what_it_does_not_know_is_left_over(
    tmp_path: Path, moto_address: tuple[str, int]
) -> None:
    with aws_cluster(tmp_path, moto_address) as (cluster, proxy):
        endpoint = cluster.options.endpoint_url
        cluster.submit(JOB)
        cluster.until(lambda client: proxy.launches)
        code, rented = audited(tmp_path, endpoint)
        (instance,) = [each for each in rented["found"] if each["kind"] == "instance"]
        assert (code, instance["verdict"]) == (0, "known")
        assert instance["id"] == proxy.launches[0].ref
        assert instance["hourly_micros"] > 0
        leaked = leak(moto_address, rented["journal"])
        code, found = audited(tmp_path, endpoint)
        left = [(each["id"], each["verdict"]) for each in found["found"] if each["left_over"]]
        assert (code, left) == (1, [(leaked, "unknown")])
