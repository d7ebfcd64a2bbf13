"""`eva serve --cloud aws` as a process of its own, against moto's EC2: what it asks for and ends.

No machine boots here, so no worker joins; that instances run what they are given is for the tests
that have machines.
"""

from __future__ import annotations

import base64
import re
import shutil
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509

from eva.adapters.aws.names import Mark
from eva.adapters.aws.request import user_data
from eva.adapters.identity.bootstrap import Bootstrap, decode_bootstrap
from eva.cli.serving import start_in_background
from eva.inputs import catalogs
from eva.master.options import ServeOptions
from eva.master.words import Submission
from eva.model.errors import OperatorError
from eva.model.ids import InstanceId
from eva.ports.cloud import REAP_AFTER_MS, LaunchIntent
from tests.end_to_end.aws.cluster import ADVERTISED, BUCKET, SETTINGS, ZONES, aws_cluster
from tests.end_to_end.live.cluster import LiveCluster
from tests.support.cloud_proxy import CloudProxy, Launch, refusal
from tests.support.moto_server import aws_credentials, direct_client, moto_address
from tests.support.price_list import serve_spot_prices

__all__ = ["aws_credentials", "moto_address"]  # fixtures by being here
pytestmark = pytest.mark.usefixtures("aws_credentials")

JOB = "name: train\nrun: train --all\nresources: {gpus: 1, cpus: 4, memory: 16GB}\n"


def bootstrap_of(launch: Launch, endpoint: str | None) -> Bootstrap:
    """The one secret in what the instance is given; the rest is the script as it stands."""
    text = base64.b64decode(launch.params["UserData"]).decode()
    (word,) = re.findall(r"eva1\.\S+", text)
    name, type_ = launch.tag("eva:instance") or "", launch.params["InstanceType"]
    kind = catalogs.load("aws").get(type_)
    assert kind is not None
    settings = replace(SETTINGS, endpoint=endpoint)
    assert text == user_data(settings, LaunchIntent(InstanceId(name), kind, word), type_)
    return decode_bootstrap(word)


def names_in_certificate(port: int) -> set[str]:
    """Whom the workers' port says that it is, as far as it says addresses."""
    pem = ssl.get_server_certificate(("127.0.0.1", port))
    names = x509.load_pem_x509_certificate(pem.encode()).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    return {str(address) for address in names.value.get_values_for_type(x509.IPAddress)}


def states(moto: tuple[str, int]) -> list[str]:
    client = direct_client("ec2", moto)
    found = client.describe_instances()["Reservations"]
    client.close()
    return [each["State"]["Name"] for group in found for each in group["Instances"]]


def test_a_job_rents_what_is_to_be_had_and_its_end_leaves_nothing(
    tmp_path: Path, moto_address: tuple[str, int]
) -> None:
    with aws_cluster(tmp_path, moto_address) as (cluster, proxy):
        # The cheapest type is nowhere to be had.
        for zone in ZONES:
            proxy.script.no_capacity["g4dn.xlarge", zone] = "InsufficientInstanceCapacity"
        job = cluster.submit(JOB)
        cluster.until(lambda client: proxy.launches)
        asked = [
            (each["InstanceType"], each["Placement.AvailabilityZone"])
            for each in proxy.asked
            if each.get("Action") == "RunInstances"  # prices are asked for in another protocol
        ]
        assert asked[:2] == [("g4dn.xlarge", zone) for zone in ZONES]
        assert len(asked) == 3
        (launch,) = proxy.launches
        assert launch.params["InstanceType"] == asked[2][0] != "g4dn.xlarge"
        with cluster.client() as client:
            (instance,) = client.instances()
            (refused,) = [e.text for e in client.events() if e.kind == "LaunchRefused"]
        assert (instance.id, instance.type) == (launch.tag("eva:instance"), asked[2][0])
        assert "InsufficientInstanceCapacity" in refused
        check_request(launch, cluster.options.endpoint_url)
        cluster.until(lambda client: client.instances()[0].acquired_ms is not None)
        with cluster.client() as client:
            client.cancel(job)
        cluster.until(lambda client: not client.instances())
        assert cluster.unpaid() == 0
        assert proxy.alive() == []
        assert set(states(moto_address)) == {"terminated"}
        # What the master said at last is what it was asked for once, and nothing else.
        assert len(proxy.launches) == 1


def check_request(launch: Launch, endpoint: str | None) -> None:
    params, name = launch.params, launch.tag("eva:instance")
    journal = launch.tag("eva:journal")
    assert name
    assert journal
    assert launch.tag("eva:cluster") == SETTINGS.cluster
    mark = Mark(SETTINGS.cluster, journal)
    zone = params["Placement.AvailabilityZone"]
    assert launch.token == mark.token(InstanceId(name), params["InstanceType"], zone, 1)
    assert params["MetadataOptions.HttpTokens"] == "required"
    assert params["MetadataOptions.HttpPutResponseHopLimit"] == "1"
    assert params["InstanceInitiatedShutdownBehavior"] == "terminate"
    told = bootstrap_of(launch, endpoint)
    assert (told.instance, told.cluster, told.runtime) == (name, journal, "process")
    assert told.storage.startswith(f"s3://{BUCKET}/storage?")
    host, _, port = told.join_address.rpartition(":")
    assert host == told.address.rpartition(":")[0] == ADVERTISED
    assert names_in_certificate(int(port)) == {"127.0.0.1", ADVERTISED}


def test_a_master_that_lost_its_disk_ends_what_was_rented_and_rents_anew(
    tmp_path: Path, moto_address: tuple[str, int]
) -> None:
    with aws_cluster(tmp_path, moto_address) as (cluster, proxy):
        cluster.submit(JOB)
        cluster.until(lambda client: proxy.launches)
        cluster.kill()
        (lost,) = proxy.launches
        settings = (tmp_path / "aws.yaml").read_text()
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        (tmp_path / "aws.yaml").write_text(settings)
        cluster.start()
        cluster.submit(JOB)
        cluster.until(lambda client: len(proxy.launches) == 2)
        assert lost.ending_ms is None, "it may be too young for anybody to be sure"
        new = proxy.launches[1]
        assert (new.tag("eva:instance"), new.tag("eva:cluster")) == ("i-1", SETTINGS.cluster)
        assert new.token != lost.token
        lost.launched_ms -= 2 * REAP_AFTER_MS
        cluster.until(lambda client: proxy.alive() == [new], within_s=120)
        with cluster.client() as client:
            assert [each.id for each in client.instances()] == ["i-1"]


# Spot

ON_SPOT = JOB.replace("gpus: 1", "use_spot: true, gpus: 1")


def one_price_on_spot(proxy: CloudProxy) -> None:
    serve_spot_prices(proxy, {"g4dn.xlarge": "0.2000"}, ZONES[1])


def know_the_prices(cluster: LiveCluster) -> None:
    """The price on spot is not the catalog's: it has to be heard from EC2 first."""
    cluster.until(
        lambda client: sum(each.kind == "CatalogChanged" for each in client.events()) == 2
    )


def runs(proxy: CloudProxy) -> list[tuple[str, str | None]]:
    """What was asked for: the type, and the market if it is not the usual one."""
    return [
        (each["InstanceType"], each.get("InstanceMarketOptions.MarketType"))
        for each in proxy.asked
        if each.get("Action") == "RunInstances"
    ]


def test_a_job_that_allows_spot_is_rented_for_there_and_outlives_its_master(
    tmp_path: Path, moto_address: tuple[str, int]
) -> None:
    with aws_cluster(tmp_path, moto_address, one_price_on_spot) as (cluster, proxy):
        know_the_prices(cluster)
        with cluster.client() as client:
            preview = client.preview(Submission(job_file=ON_SPOT))
        (place,) = preview.instances
        assert (place.type, place.hourly_micros) == ("g4dn.xlarge:spot", 200_000)
        assert (preview.added_micros, place.risk_micros > 0) == (200_000, True)
        job = cluster.submit(ON_SPOT)
        cluster.until(lambda client: proxy.launches)
        (launch,) = proxy.launches
        assert runs(proxy) == [("g4dn.xlarge", "spot")]
        assert launch.params["InstanceMarketOptions.SpotOptions.SpotInstanceType"] == "one-time"
        check_request(launch, cluster.options.endpoint_url)
        cluster.until(lambda client: client.instances()[0].acquired_ms is not None)
        cluster.kill()
        cluster.start()
        with cluster.client() as client:
            (instance,) = client.instances()
            told = client.explain(instance.id)
        assert (instance.type, instance.hourly_micros) == ("g4dn.xlarge:spot", 200_000)
        assert instance.risk_micros == place.risk_micros
        assert "about once in 20h00m" in told.text
        assert "for the risk of interruption" in told.text
        with cluster.client() as client:
            client.cancel(job)
        cluster.until(lambda client: not client.instances())
        assert len(proxy.launches) == 1
        assert proxy.alive() == []
        assert cluster.unpaid() == 0


def test_what_is_refused_on_spot_is_rented_on_demand_at_once(
    tmp_path: Path, moto_address: tuple[str, int]
) -> None:
    with aws_cluster(tmp_path, moto_address, one_price_on_spot) as (cluster, proxy):
        know_the_prices(cluster)
        proxy.script.next["RunInstances"].append(refusal("MaxSpotInstanceCountExceeded"))
        cluster.submit(ON_SPOT)
        cluster.until(lambda client: proxy.launches)
        assert runs(proxy) == [("g4dn.xlarge", "spot"), ("g4dn.xlarge", None)]
        with cluster.client() as client:
            (instance,) = client.instances()
            (refused,) = [e.text for e in client.events() if e.kind == "LaunchRefused"]
        assert (instance.type, instance.risk_micros) == ("g4dn.xlarge", 0)
        assert "MaxSpotInstanceCountExceeded" in refused


@pytest.mark.parametrize(
    ("text", "say"),
    [
        ("", "run `eva aws init`"),
        ("region: us-east-1\nimage: ami-1\nzones: [us-east-1a]\nbucket: eva-1\n", "cluster"),
    ],
)
def test_what_is_wrong_with_the_settings_is_one_clear_line(
    tmp_path: Path, text: str, say: str
) -> None:
    if text:
        (tmp_path / "aws.yaml").write_text(text)
    options = ServeOptions(tmp_path, port=0, cloud="aws")
    with pytest.raises(OperatorError, match="did not start") as caught:
        start_in_background(options)
    last = str(caught.value).splitlines()[-1]
    assert say in last
    assert "Traceback" not in str(caught.value)
