"""A master around the world in memory, that can be killed and started again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from eva.adapters.directory import DirectoryStorage
from eva.adapters.memory.journal import MemoryJournal
from eva.inputs.catalogs import builtin
from eva.master.clock import wall_ms
from eva.master.service import Master, Surroundings, take_lease
from eva.master.settings import MasterSettings
from eva.master.words import Submission
from tests.unit.master.world import World

SETTINGS = MasterSettings(
    round_ms=100,
    poll_ms=50,
    settle_ms=200,
    reap_ms=50,
    unreachable_ms=60_000,
    lease_ttl_ms=300_000,
)
JOB = "name: train\nrun: train --all\nresources: {gpus: 1, cpus: 4, memory: 20}\n"


class Bench:
    """One world and one journal, and whoever is master of them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.world = World()
        self.journal = MemoryJournal(wall_ms)
        self.settings = SETTINGS
        self.master: Master | None = None

    async def start(self, settings: MasterSettings | None = None) -> Master:
        around = Surroundings(
            builtin("paper"),
            self.journal,
            self.world.cloud,
            self.world.link,
            DirectoryStorage(self.home / "storage"),
            self.home,
        )
        lease = await take_lease(self.journal, "test", self.settings.lease_ttl_ms)
        self.master = await Master.start(settings or self.settings, around, lease)
        return self.master

    async def crash(self) -> None:
        """As `kill -9`: nothing is finished, nothing is said; the lease is known to be dead."""
        master, self.master = self.master, None
        assert master is not None
        lease = master.lease
        await master.abandon()
        self.world.disconnect()
        self.journal.release(lease)

    async def submit(self, text: str = JOB, key: str | None = None) -> str:
        assert self.master is not None
        answer = await self.master.desk.submit(Submission(job_file=text, key=key), "tester")
        return answer.job


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that other tasks of this loop bring about."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  what is waited for knows nothing of tests
            await asyncio.sleep(0.01)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@asynccontextmanager
async def running(bench: Bench) -> AsyncIterator[Master]:
    master = await bench.start()
    try:
        yield master
    finally:
        if bench.master is not None:
            await bench.master.stop()
