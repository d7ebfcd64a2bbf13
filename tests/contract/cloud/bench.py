"""One cloud under test, and what the suite has to know about it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from eva.adapters.fake.cloud import FakeCloud
from eva.adapters.local import LocalCloud, LocalDelays
from eva.model.catalog import InstanceDelays, InstanceType
from eva.model.ids import InstanceId
from eva.model.resources import Resources
from eva.ports.cloud import Cloud, CloudInstance, CloudState, LaunchIntent

DELAYS = InstanceDelays(acquire_ms=60, start_worker_ms=0, terminate_ms=60)
KIND = InstanceType("p3.8xlarge", "p3", Resources(4, 32_000, 249_856), 12_240_000, DELAYS)
PATIENCE_S = 20.0
WORKER = Path(__file__).with_name("quiet_worker.py")


def intent(name: str, *, spot: bool = False, zones: tuple[str, ...] = ()) -> LaunchIntent:
    return LaunchIntent(InstanceId(name), KIND, f"bootstrap of {name}", spot, zones)


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class Clock:
    """A clock that goes when it is told to."""

    now_ms: int = 1_000_000

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, passed_ms: int) -> None:
        self.now_ms += passed_ms


@dataclass
class CloudBench:
    cloud: Cloud
    again: Callable[[], Cloud]  # the same cloud, seen by a master that restarted
    clock: Callable[[], int]
    advance: Callable[[int], None]  # let so many ms pass, where time is not the world's
    grow_old: Callable[[int], None]  # so many ms pass for whoever judges an instance's age
    zones: tuple[str, ...] = ("zone-b", "zone-a")
    acquire_ms: int = KIND.delays.acquire_ms  # at least, between asking and the bill's beginning

    async def reaches(self, name: str, state: CloudState) -> CloudInstance:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await self.cloud.describe(InstanceId(name))
                if found.state is state:
                    return found
                self.advance(20)
                await asyncio.sleep(0.02)


def local_bench(folder: Path) -> CloudBench:
    older = Clock(0)

    def make() -> LocalCloud:
        return LocalCloud(
            folder,
            lambda: wall_clock_ms() + older(),
            LocalDelays(1.0),
            (sys.executable, "-S", str(WORKER)),
        )

    return CloudBench(make(), make, wall_clock_ms, lambda _ms: None, older.advance)


def fake_bench() -> CloudBench:
    clock = Clock()
    cloud = FakeCloud(clock)
    return CloudBench(cloud, lambda: cloud, clock, clock.advance, clock.advance)


async def clear(bench: CloudBench) -> None:
    """Leave nothing behind, also where the test closed its cloud."""
    bench.cloud = bench.again()
    for found in await bench.cloud.list():
        await bench.cloud.terminate(found.instance)
        await bench.reaches(found.instance, CloudState.TERMINATED)
