"""Launching over HTTP: where an instance comes from, and that there is never a second one."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from pathlib import Path

import pytest

from eva.adapters.aws.names import Mark
from eva.adapters.aws.pacing import Urgency
from eva.model.errors import EvaError, OperatorError
from eva.model.ids import InstanceId
from eva.ports.cloud import (
    CloudCapacityError,
    CloudInstance,
    CloudQuotaError,
    CloudState,
    CloudThrottledError,
    CloudUnauthorisedError,
    CloudUnreachableError,
    InstanceNotFoundError,
    LaunchIntent,
    UnsupportedTypeError,
)
from tests.support.cloud_proxy import LOST_REPLY, LOST_REQUEST, THROTTLED, refusal
from tests.support.moto_server import direct_client
from tests.unit.adapters.aws.harness import BIG, BIGGER, ZONES, Bench, intent

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
NO_CAPACITY = "InsufficientInstanceCapacity"


def offerings(bench: Bench) -> list[tuple[str, str]]:
    """What was asked for, in order."""
    return [
        (asked["InstanceType"], asked["Placement.AvailabilityZone"])
        for asked in bench.asked("RunInstances")
    ]


async def until_known(bench: Bench, wanted: LaunchIntent) -> CloudInstance:
    """Ask as the master does, until it is no longer unknown."""
    cloud = bench.opened[-1]
    for _ in range(20):
        try:
            return await cloud.launch(wanted)
        except CloudUnreachableError:
            bench.clock.advance(10_000)
    raise AssertionError("unknown for 200 s")


async def test_everything_is_asked_for_at_launch(
    bench: Bench, moto_address: tuple[str, int]
) -> None:
    told = await bench.open().launch(intent("i-1"))
    (asked,) = bench.asked("RunInstances")
    assert asked["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert asked["MetadataOptions.HttpTokens"] == "required"
    assert asked["MetadataOptions.HttpPutResponseHopLimit"] == "1"
    mark = Mark(bench.settings.cluster)
    assert asked["ClientToken"] == mark.token(InstanceId("i-1"), BIG.name, ZONES[0], 1)
    kinds = {asked[f"TagSpecification.{n}.ResourceType"] for n in (1, 2, 3)}
    assert kinds == {"instance", "volume", "network-interface"}
    script = base64.b64decode(asked["UserData"]).decode()
    assert "eva1.i-1" in script
    assert "\ncapacity=4,32000,249856\n" in script
    volumes = direct_client("ec2", moto_address).describe_volumes(
        Filters=[{"Name": "attachment.instance-id", "Values": [told.ref]}]
    )["Volumes"]
    assert {"Key": "eva:cluster", "Value": bench.settings.cluster} in volumes[0]["Tags"]


async def test_spot_is_asked_for_once_and_never_stops(bench: Bench) -> None:
    told = await bench.open().launch(intent("i-1", spot=True))
    (asked,) = bench.asked("RunInstances")
    assert told.spot
    assert asked["InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior"] == "terminate"
    assert asked["TagSpecification.4.ResourceType"] == "spot-instances-request"


async def test_no_capacity_in_one_zone_means_the_next(bench: Bench) -> None:
    bench.proxy.script.no_capacity[BIG.name, ZONES[0]] = NO_CAPACITY
    told = await bench.open().launch(intent("i-1", more=(BIGGER,)))
    assert (told.type, told.zone) == (BIG.name, ZONES[1])


async def test_no_capacity_anywhere_means_the_next_best_type(bench: Bench) -> None:
    for zone in ZONES:
        bench.proxy.script.no_capacity[BIG.name, zone] = NO_CAPACITY
    told = await bench.open().launch(intent("i-1", more=(BIGGER,)))
    assert told.type == BIGGER.name
    assert offerings(bench) == [(BIG.name, z) for z in ZONES] + [(BIGGER.name, ZONES[0])]


async def test_a_quota_holds_in_every_zone(bench: Bench) -> None:
    bench.proxy.script.no_capacity[BIG.name, ZONES[0]] = "VcpuLimitExceeded"
    told = await bench.open().launch(intent("i-1", more=(BIGGER,)))
    assert told.type == BIGGER.name
    assert offerings(bench) == [(BIG.name, ZONES[0]), (BIGGER.name, ZONES[0])]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (NO_CAPACITY, CloudCapacityError),
        ("VcpuLimitExceeded", CloudQuotaError),
        ("MaxSpotInstanceCountExceeded", CloudQuotaError),
        ("Unsupported", UnsupportedTypeError),
        ("UnauthorizedOperation", CloudUnauthorisedError),
        ("InvalidAMIID.NotFound", OperatorError),
        ("SomethingNew", OperatorError),
    ],
)
async def test_refusals_are_typed_and_leave_nothing(
    bench: Bench, code: str, expected: type[EvaError]
) -> None:
    for zone in ZONES:
        bench.proxy.script.no_capacity[BIG.name, zone] = code
    cloud = bench.open()
    with pytest.raises(expected, match=code) as caught:
        await cloud.launch(intent("i-1"))
    assert type(caught.value) is expected
    assert bench.proxy.launches == []
    bench.proxy.script.no_capacity.clear()
    bench.clock.advance(bench.settings.set_aside_ms)
    assert (await cloud.launch(intent("i-1"))).state is CloudState.RUNNING


async def test_what_was_refused_is_set_aside_for_three_minutes(bench: Bench) -> None:
    for zone in ZONES:
        bench.proxy.script.no_capacity[BIG.name, zone] = NO_CAPACITY
    cloud = bench.open()
    with pytest.raises(CloudCapacityError):
        await cloud.launch(intent("i-1"))
    calls = bench.calls("RunInstances")
    bench.clock.advance(179_999)
    with pytest.raises(CloudCapacityError, match="tried again after"):
        await cloud.launch(intent("i-2"))
    assert bench.calls("RunInstances") == calls
    bench.proxy.script.no_capacity.clear()
    assert (await cloud.launch(intent("i-3", spot=True))).spot  # a market of its own
    bench.clock.advance(1)
    assert (await cloud.launch(intent("i-2"))).zone == ZONES[0]


async def test_throttling_is_waited_out_and_then_told(bench: Bench) -> None:
    cloud = bench.open()
    bench.proxy.script.next["RunInstances"].append(THROTTLED)
    assert (await cloud.launch(intent("i-1"))).ref
    assert bench.calls("RunInstances") == 2


async def test_throttling_without_end_is_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eva.adapters.aws.connection._TIMES", 1)
    cloud = bench.open()
    bench.proxy.script.next["RunInstances"].append(THROTTLED)
    with pytest.raises(CloudThrottledError):
        await cloud.launch(intent("i-1"))
    assert bench.proxy.launches == []


async def test_a_lost_reply_is_found_again_by_its_token(bench: Bench) -> None:
    cloud = bench.open()
    bench.proxy.script.next["RunInstances"].append(LOST_REPLY)
    with pytest.raises(CloudUnreachableError):
        await cloud.launch(intent("i-1"))
    told = await bench.open().launch(intent("i-1"))
    assert [each.ref for each in bench.proxy.launches] == [told.ref]


async def test_a_lost_reply_in_the_second_zone_is_not_looked_for_in_the_first(
    bench: Bench,
) -> None:
    """After the crash the first zone has capacity again: asking there would get another one."""
    script = bench.proxy.script
    script.no_capacity[BIG.name, ZONES[0]] = NO_CAPACITY
    script.next["RunInstances"].extend([None, LOST_REPLY])
    script.visible_after_ms = 30_000
    with pytest.raises(CloudUnreachableError):
        await bench.open().launch(intent("i-1"))
    script.no_capacity.clear()
    told = await bench.open().launch(intent("i-1"))
    assert told.zone == ZONES[1]
    assert len(bench.proxy.launches) == 1


async def test_another_bootstrap_finds_the_instance_that_was_asked_for_before(
    bench: Bench,
) -> None:
    """EC2 says that the token was used for something else, and shows the instance only later."""
    script = bench.proxy.script
    script.visible_after_ms = 30_000
    script.next["RunInstances"].append(LOST_REPLY)
    cloud = bench.open()
    with pytest.raises(CloudUnreachableError):
        await cloud.launch(intent("i-1"))
    renewed = LaunchIntent(InstanceId("i-1"), BIG, "eva1.another-token")
    told = await until_known(bench, renewed)
    assert [each.ref for each in bench.proxy.launches] == [told.ref]


async def test_a_refusal_after_a_lost_reply_proves_nothing(bench: Bench) -> None:
    """Quotas may be looked at before tokens: the instance is there, and counts against it."""
    script = bench.proxy.script
    script.visible_after_ms = 30_000
    script.next["RunInstances"].extend([LOST_REPLY, *4 * [refusal("VcpuLimitExceeded")]])
    cloud = bench.open()
    with pytest.raises(CloudUnreachableError):
        await cloud.launch(intent("i-1", more=(BIGGER,)))
    told = await until_known(bench, intent("i-1", more=(BIGGER,)))
    assert [each.ref for each in bench.proxy.launches] == [told.ref]


async def test_a_lost_request_is_given_up_for_the_next_offering_in_time(bench: Bench) -> None:
    script = bench.proxy.script
    script.no_capacity[BIG.name, ZONES[0]] = NO_CAPACITY
    script.next["RunInstances"].append(LOST_REQUEST)
    cloud = bench.open()
    with pytest.raises(CloudUnreachableError):
        await cloud.launch(intent("i-1"))
    told = await until_known(bench, intent("i-1"))
    assert told.zone == ZONES[1]
    tokens = [asked["ClientToken"] for asked in bench.asked("RunInstances")]
    assert len(set(tokens[:-1])) == 1, "attempt 1 is resolved by its token before attempt 2"
    assert tokens[-1] != tokens[0]


async def test_a_lost_book_is_replaced_by_what_ec2_shows(bench: Bench, tmp_path: Path) -> None:
    script = bench.proxy.script
    script.visible_after_ms = 30_000
    script.no_capacity[BIG.name, ZONES[0]] = NO_CAPACITY
    first = await bench.open().launch(intent("i-1"))
    script.no_capacity.clear()
    bench.open(new_cluster=False, folder=tmp_path / "elsewhere")
    told = await until_known(bench, intent("i-1"))
    assert told.ref == first.ref
    assert len(bench.proxy.launches) == 1


async def test_a_lost_book_launches_what_was_never_launched(bench: Bench, tmp_path: Path) -> None:
    bench.open(new_cluster=False, folder=tmp_path / "elsewhere")
    began_ms = bench.clock()
    assert (await until_known(bench, intent("i-1"))).ref
    assert bench.clock() - began_ms >= bench.settings.settle_ms


async def test_a_new_instance_that_is_not_shown_yet_is_not_gone(bench: Bench) -> None:
    bench.proxy.script.visible_after_ms = 30_000
    cloud = bench.open()
    launched = await cloud.launch(intent("i-1"))
    for told in (
        await cloud.describe(launched.instance),
        await cloud.launch(intent("i-1")),
        *await cloud.list(),
    ):
        assert (told.ref, told.state) == (launched.ref, CloudState.PENDING)
    with pytest.raises(CloudUnreachableError, match="too new"):
        await cloud.terminate(launched.instance)
    bench.clock.advance(30_000)
    assert (await cloud.terminate(launched.instance)).state is CloudState.TERMINATED


async def test_an_end_asked_for_while_the_launch_is_unknown_waits_for_it(bench: Bench) -> None:
    script = bench.proxy.script
    script.visible_after_ms = 30_000
    script.next["RunInstances"].append(LOST_REPLY)
    cloud = bench.open()
    with pytest.raises(CloudUnreachableError):
        await cloud.launch(intent("i-1"))
    with pytest.raises(CloudUnreachableError, match="not known yet"):
        await cloud.terminate(InstanceId("i-1"))
    bench.clock.advance(30_000)
    await cloud.terminate(InstanceId("i-1"))
    assert bench.proxy.alive() == []


async def test_an_end_of_what_never_came_is_not_found_in_time(bench: Bench) -> None:
    bench.proxy.script.next["RunInstances"].append(LOST_REQUEST)
    cloud = bench.open()
    with pytest.raises(CloudUnreachableError):
        await cloud.launch(intent("i-1"))
    bench.clock.advance(bench.settings.settle_ms)
    with pytest.raises(InstanceNotFoundError):
        await cloud.terminate(InstanceId("i-1"))


async def test_what_ec2_forgot_is_gone_only_after_a_while(
    bench: Bench, moto_address: tuple[str, int]
) -> None:
    cloud = bench.open()
    await cloud.launch(intent("i-1"))
    bench.clock.advance(10 * 3_600_000)
    launch = bench.proxy.launches[0]
    launch.seen_from_ms = bench.clock() + 10 * 3_600_000
    with pytest.raises(InstanceNotFoundError):
        await cloud.describe(InstanceId("i-1"))
    assert list(await cloud.list()) == []
    bench.clock.advance(bench.settings.settle_ms)
    (told,) = await cloud.list()
    assert (told.state, told.terminated_ms) == (CloudState.TERMINATED, bench.clock())
    assert (await cloud.launch(intent("i-1"))).state is CloudState.TERMINATED
    assert len(bench.proxy.launches) == 1


async def test_a_bootstrap_that_ec2_cannot_take_is_refused_before_it_is_asked_for(
    bench: Bench,
) -> None:
    with pytest.raises(OperatorError, match="16384"):
        await bench.open().launch(LaunchIntent(InstanceId("i-1"), BIG, "x" * 20_000))
    assert bench.calls("RunInstances") == 0


async def test_a_name_that_a_cluster_had_before_costs_a_minute_and_no_more(
    bench: Bench, tmp_path: Path
) -> None:
    """EC2 remembers the tokens of instances that it shows no more; the next attempt has another."""
    await bench.open().launch(intent("i-1"))
    bench.proxy.launches[0].seen_from_ms = bench.clock() + 10 * 3_600_000
    bench.open(folder=tmp_path / "new")
    told = await until_known(bench, LaunchIntent(InstanceId("i-1"), BIG, "eva1.another"))
    assert told.ref == bench.proxy.launches[1].ref


async def test_subnets_volumes_and_groups_are_taken_by_ec2(
    bench: Bench, moto_address: tuple[str, int]
) -> None:
    client = direct_client("ec2", moto_address)
    (subnet,) = client.describe_subnets(
        Filters=[{"Name": "availability-zone", "Values": [ZONES[1]]}]
    )["Subnets"]
    group = client.create_security_group(GroupName="eva", Description="none", VpcId=subnet["VpcId"])
    bench.settings = replace(
        bench.settings,
        zones=(),
        subnets={ZONES[1]: subnet["SubnetId"]},
        security_groups=(group["GroupId"],),
        root_volume_gib=200,
        public_address=False,
    )
    told = await bench.open().launch(intent("i-1"))
    (found,) = client.describe_instances(InstanceIds=[told.ref])["Reservations"][0]["Instances"]
    assert (told.zone, found["SubnetId"]) == (ZONES[1], subnet["SubnetId"])
    (interface,) = found["NetworkInterfaces"]
    assert [each["GroupId"] for each in interface["Groups"]] == [group["GroupId"]]
    (volume,) = client.describe_volumes(
        Filters=[{"Name": "attachment.instance-id", "Values": [told.ref]}]
    )["Volumes"]
    assert (volume["Size"], volume["Encrypted"]) == (200, True)
    (disk,) = found["BlockDeviceMappings"]
    assert (disk["Ebs"]["VolumeId"], disk["Ebs"]["DeleteOnTermination"]) == (
        volume["VolumeId"],
        True,
    )


async def test_all_pages_are_read(bench: Bench) -> None:
    cloud = bench.open()
    for number in range(7):
        await cloud.launch(intent(f"i-{number}"))
    found = await cloud._instances._connection.pages(
        Urgency.LOOK,
        "describe_instances",
        "Reservations",
        MaxResults=5,
        Filters=Mark(bench.settings.cluster).filters(),
    )
    assert len(found) == 7


async def test_many_launches_at_once_are_one_each(bench: Bench) -> None:
    cloud = bench.open()
    told = await asyncio.gather(*(cloud.launch(intent(f"i-{n % 4}")) for n in range(16)))
    assert len({each.ref for each in told}) == 4
    assert len(bench.proxy.launches) == 4
