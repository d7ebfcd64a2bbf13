"""What the master may count on, whoever rents the instances."""

from __future__ import annotations

import asyncio

import pytest

from eva.model.errors import TryAgainError
from eva.model.ids import InstanceId
from eva.ports.cloud import REAP_AFTER_MS, CloudState, InstanceNotFoundError
from tests.contract.cloud.bench import KIND, CloudBench, intent

pytestmark = pytest.mark.anyio


async def test_an_instance_comes_up_and_is_billed_from_then(bench: CloudBench) -> None:
    await bench.cloud.check()
    before_ms = bench.clock()
    told = await bench.cloud.launch(intent("i-1", spot=True, zones=bench.zones))
    assert told.instance == "i-1"
    assert told.type == KIND.name
    assert told.spot
    assert told.zone == bench.zones[0]
    assert told.ref
    running = await bench.reaches("i-1", CloudState.RUNNING)
    assert running.launched_ms is not None
    assert before_ms + bench.acquire_ms <= running.launched_ms <= bench.clock()
    assert running.terminated_ms is None


async def test_asking_twice_gives_one_instance(bench: CloudBench) -> None:
    first = await bench.cloud.launch(intent("i-1"))
    second = await bench.cloud.launch(intent("i-1"))
    third = await bench.again().launch(intent("i-1"))
    assert first.ref == second.ref == third.ref
    assert len(await bench.cloud.list()) == 1


async def test_asking_twice_at_once_gives_one_instance(bench: CloudBench) -> None:
    told = await asyncio.gather(
        bench.cloud.launch(intent("i-1")), bench.again().launch(intent("i-1"))
    )
    assert len({each.ref for each in told}) == 1
    assert len(await bench.cloud.list()) == 1


async def test_an_end_is_told_with_its_time_and_stays_told(bench: CloudBench) -> None:
    await bench.cloud.launch(intent("i-1"))
    running = await bench.reaches("i-1", CloudState.RUNNING)
    asked_ms = bench.clock()
    told = await bench.cloud.terminate(InstanceId("i-1"))
    assert told.state in (CloudState.STOPPING, CloudState.TERMINATED)
    ended = await bench.reaches("i-1", CloudState.TERMINATED)
    assert ended.launched_ms == running.launched_ms
    assert ended.terminated_ms is not None
    assert asked_ms + KIND.delays.terminate_ms <= ended.terminated_ms <= bench.clock()
    assert await bench.cloud.terminate(InstanceId("i-1")) == ended
    assert list(await bench.again().list()) == [ended]


async def test_an_intent_whose_instance_is_gone_gets_no_second_one(bench: CloudBench) -> None:
    await bench.cloud.launch(intent("i-1"))
    await bench.cloud.terminate(InstanceId("i-1"))
    ended = await bench.reaches("i-1", CloudState.TERMINATED)
    assert await bench.cloud.launch(intent("i-1")) == ended


async def test_a_launch_that_is_called_off_before_it_came_is_not_billed(
    bench: CloudBench,
) -> None:
    await bench.cloud.launch(intent("i-1"))
    await bench.cloud.terminate(InstanceId("i-1"))
    ended = await bench.reaches("i-1", CloudState.TERMINATED)
    assert ended.launched_ms is None or ended.terminated_ms is not None


async def test_the_list_has_all_of_them_by_id(bench: CloudBench) -> None:
    assert list(await bench.cloud.list()) == []
    for name in ("i-2", "i-1", "i-3"):
        await bench.cloud.launch(intent(name))
    await bench.cloud.terminate(InstanceId("i-3"))
    await bench.reaches("i-3", CloudState.TERMINATED)
    listed = await bench.cloud.list()
    assert [each.instance for each in listed] == ["i-1", "i-2", "i-3"]


async def test_what_was_never_launched_is_not_found(bench: CloudBench) -> None:
    for call in (bench.cloud.describe, bench.cloud.terminate):
        with pytest.raises(InstanceNotFoundError) as caught:
            await call(InstanceId("i-9"))
        assert isinstance(caught.value, TryAgainError)
        assert "i-9" in str(caught.value)


async def test_instances_do_not_mind_that_the_master_goes(bench: CloudBench) -> None:
    await bench.cloud.launch(intent("i-1"))
    running = await bench.reaches("i-1", CloudState.RUNNING)
    await bench.cloud.close()
    assert list(await bench.again().list()) == [running]


async def test_what_nobody_knows_is_reaped_when_it_is_old_enough(bench: CloudBench) -> None:
    for name in ("i-1", "i-2"):
        await bench.cloud.launch(intent(name))
        await bench.reaches(name, CloudState.RUNNING)
    assert list(await bench.cloud.reap(lambda: [InstanceId("i-1")])) == []
    bench.grow_old(REAP_AFTER_MS + 1)
    reaped = await bench.again().reap(lambda: [InstanceId("i-1")])
    assert [(each.instance, each.failed) for each in reaped] == [("i-2", "")]
    await bench.reaches("i-2", CloudState.TERMINATED)
    assert list(await bench.cloud.reap(lambda: [InstanceId("i-1")])) == []
    assert (await bench.cloud.describe(InstanceId("i-1"))).state is CloudState.RUNNING


async def test_the_cloud_is_looked_at_before_it_is_asked_what_is_known(bench: CloudBench) -> None:
    """What is asked for in between is known by then, or not seen."""
    await bench.cloud.launch(intent("i-1"))
    await bench.reaches("i-1", CloudState.RUNNING)
    bench.grow_old(REAP_AFTER_MS + 1)
    asked = []

    def known() -> list[InstanceId]:
        asked.append(True)
        return [InstanceId("i-1")]

    assert list(await bench.cloud.reap(known)) == []
    assert asked
