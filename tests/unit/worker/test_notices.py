"""Looking for notices at a metadata service that is slow, gone, or says strange things."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from eva.adapters.instance_metadata import (
    NOTICE_MS,
    Fact,
    InstanceMetadata,
    MetadataUnreachableError,
    deadline_ms,
)
from eva.worker import notices
from eva.worker.notices import MetadataWatch
from tests.support.metadata_server import MetadataServer, metadata_server

pytestmark = pytest.mark.anyio
ACTION = "spot/instance-action"
SOON = '{"action": "terminate", "time": "2026-03-01T12:00:00Z"}'
NOON_MS = 1_772_366_400_000
PATIENCE_S = 20.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def service() -> Iterator[MetadataServer]:
    with metadata_server() as server:
        yield server


@pytest.fixture
async def watching(service: MetadataServer) -> AsyncIterator[asyncio.Task[int | None]]:
    watch = MetadataWatch(InstanceMetadata(service.address), lambda: 1_000, poll_s=0.01)
    task = asyncio.create_task(watch.deadline_ms())
    yield task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  the server is in a thread
            await asyncio.sleep(0.01)


def test_questions_carry_a_token_and_a_stale_one_is_replaced(service: MetadataServer) -> None:
    metadata = InstanceMetadata(service.address)
    assert metadata.ask(Fact.LIFE_CYCLE) == "spot"
    assert metadata.ask(Fact.INSTANCE_ACTION) is None
    service.tokens.clear()
    assert metadata.ask(Fact.LIFE_CYCLE) == "spot"
    assert service.asked.count("/latest/api/token") == 2


@pytest.mark.parametrize("status", [403, 500])
def test_what_is_no_answer_is_said(service: MetadataServer, status: int) -> None:
    service.status = status
    with pytest.raises(MetadataUnreachableError, match=f"HTTP status {status}"):
        InstanceMetadata(service.address).ask(Fact.LIFE_CYCLE)


def test_nobody_there_is_said() -> None:
    with pytest.raises(MetadataUnreachableError, match=r"127\.0\.0\.1:9"):
        InstanceMetadata("http://127.0.0.1:9", timeout_s=0.2).ask(Fact.LIFE_CYCLE)


def test_the_time_is_read_and_two_minutes_are_assumed_where_it_cannot_be() -> None:
    assert deadline_ms(SOON, 5) == NOON_MS
    for strange in ("", "soon", "[]", "{}", '{"time": 7}', '{"time": "noon"}'):
        assert deadline_ms(strange, 5) == 5 + NOTICE_MS


async def test_a_notice_is_heard(
    service: MetadataServer, watching: asyncio.Task[int | None]
) -> None:
    await until(lambda: len(service.asked) > 5)
    assert not watching.done()
    service.facts[ACTION] = SOON
    assert await asyncio.wait_for(watching, PATIENCE_S) == NOON_MS


async def test_bad_moments_of_the_service_are_outlived(
    service: MetadataServer, watching: asyncio.Task[int | None]
) -> None:
    service.status = 503
    before = len(service.asked)
    await until(lambda: len(service.asked) > before + 5)
    assert not watching.done()
    service.facts[ACTION] = "gibberish"
    service.status = None
    assert await asyncio.wait_for(watching, PATIENCE_S) == 1_000 + NOTICE_MS


async def test_on_demand_instances_are_not_taken_back(service: MetadataServer) -> None:
    service.facts["instance-life-cycle"] = "on-demand"
    watch = MetadataWatch(InstanceMetadata(service.address), lambda: 0, poll_s=0.01)
    assert await asyncio.wait_for(watch.deadline_ms(), PATIENCE_S) is None


async def test_advice_to_leave_is_no_notice(
    service: MetadataServer, watching: asyncio.Task[int | None]
) -> None:
    service.facts[Fact.REBALANCE.value] = '{"noticeTime": "2026-03-01T12:00:00Z"}'
    await until(lambda: service.asked.count(f"/latest/meta-data/{Fact.REBALANCE.value}") == 1)
    before = len(service.asked)
    await until(lambda: len(service.asked) > before + 4)
    assert service.asked.count(f"/latest/meta-data/{Fact.REBALANCE.value}") == 1
    assert not watching.done()


async def test_a_file_is_a_notice_unless_it_holds_no_time(tmp_path: Path) -> None:
    place = tmp_path / "spot-notice"
    place.write_text("77\n")
    assert await notices.of_file(place) == 77
    place.write_text("soon")
    assert await notices.of_file(place) is None
