"""The fake's script."""

from __future__ import annotations

import pytest

from eva.adapters.fake.cloud import FakeCloud
from eva.model.ids import InstanceId
from eva.ports.cloud import CloudCapacityError, CloudState, CloudUnreachableError
from tests.contract.cloud.bench import Clock, intent

pytestmark = pytest.mark.anyio


async def test_refusals_come_in_order_and_do_nothing() -> None:
    cloud = FakeCloud(Clock())
    cloud.refuse_next("launch", CloudCapacityError("no p3 in zone-a"))
    with pytest.raises(CloudCapacityError):
        await cloud.launch(intent("i-1"))
    assert list(await cloud.list()) == []
    await cloud.launch(intent("i-1"))
    assert cloud.calls == ["launch", "list", "launch"]


async def test_a_lost_reply_has_done_its_work() -> None:
    cloud = FakeCloud(Clock())
    cloud.lose_next_reply("launch")
    with pytest.raises(CloudUnreachableError):
        await cloud.launch(intent("i-1"))
    assert len(await cloud.list()) == 1


async def test_the_cloud_takes_an_instance_back() -> None:
    clock = Clock()
    cloud = FakeCloud(clock)
    await cloud.launch(intent("i-1"))
    clock.advance(1_000)
    cloud.take_back(InstanceId("i-1"), "spot")
    gone = await cloud.describe(InstanceId("i-1"))
    assert (gone.state, gone.reason) == (CloudState.TERMINATED, "spot")
    assert gone.terminated_ms == clock()
