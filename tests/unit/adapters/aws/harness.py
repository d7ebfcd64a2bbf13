"""An adapter, the proxy under it, and a clock that goes when it is told to."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from eva.adapters.aws import AwsCloud, AwsSettings, open_ec2
from eva.adapters.aws.connection import boto_client
from eva.model.catalog import InstanceType
from eva.model.ids import InstanceId
from eva.model.resources import Resources
from eva.ports.cloud import LaunchIntent
from tests.support.cloud_proxy import CloudProxy
from tests.support.moto_server import CREDENTIALS, IMAGE, REGION

ZONES = ("us-east-1a", "us-east-1b")
BIG = InstanceType("p3.8xlarge", "p3", Resources(4, 32_000, 249_856), 12_240_000)
BIGGER = InstanceType("p3.16xlarge", "p3", Resources(8, 64_000, 499_712), 24_480_000)
_numbers = itertools.count(1)


def intent(name: str, *, spot: bool = False, more: tuple[InstanceType, ...] = ()) -> LaunchIntent:
    return LaunchIntent(InstanceId(name), BIG, f"eva1.{name}", spot, alternatives=more)


@dataclass
class Clock:
    now_ms: int = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, passed_ms: int) -> None:
        self.now_ms += passed_ms


@dataclass
class Bench:
    """`open` is the adapter after a restart; all of them share one client, which is costly."""

    proxy: CloudProxy
    clock: Clock
    settings: AwsSettings
    folder: Path
    client: Any
    opened: list[AwsCloud] = field(default_factory=list)

    def open(
        self, *, new_cluster: bool = True, folder: Path | None = None, journal: str = ""
    ) -> AwsCloud:
        cloud = open_ec2(
            self.settings,
            folder or self.folder,
            self.clock,
            journal=journal,
            new_cluster=new_cluster,
            connect=lambda: self.client,
        )
        self.opened.append(cloud)
        return cloud

    def calls(self, action: str) -> int:
        return self.proxy.calls.count(action)

    def asked(self, action: str) -> list[dict[str, str]]:
        return [params for params in self.proxy.asked if params.get("Action") == action]


@contextmanager
def connected(moto: tuple[str, int]) -> Iterator[tuple[CloudProxy, Clock, Any]]:
    """The proxy and a client with made-up credentials: slow to make, so made once."""
    clock = Clock()
    proxy = CloudProxy(moto, clock)
    with proxy.running() as endpoint, pytest.MonkeyPatch.context() as environment:
        for name, value in CREDENTIALS.items():
            environment.setenv(name, value)
        client = boto_client("ec2", REGION, endpoint)
        environment.undo()
        yield proxy, clock, client
        client.close()


@asynccontextmanager
async def new_bench(
    folder: Path, proxy: CloudProxy, clock: Clock, client: Any
) -> AsyncIterator[Bench]:
    """A new cluster in an empty account."""
    proxy.reset()
    settings = AwsSettings(
        f"test-{next(_numbers)}", REGION, IMAGE, ZONES, calls_per_second=1_000, burst=1_000
    )
    bench = Bench(proxy, clock, settings, folder, client)
    yield bench
    for cloud in bench.opened:
        await cloud.close()
