"""EC2 over moto's HTTP server as one more cloud under test, one cluster per bench.

Time is the bench's own; the proxy in between tells it to the adapter as EC2's.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from eva.adapters.aws import AwsCloud, AwsSettings, open_ec2
from tests.contract.cloud.bench import KIND, Clock, CloudBench, clear
from tests.support.cloud_proxy import CloudProxy
from tests.support.moto_server import IMAGE, REGION

ZONES = ("us-east-1b", "us-east-1a")
_numbers = itertools.count(1)


@asynccontextmanager
async def aws_bench(folder: Path, moto: tuple[str, int]) -> AsyncIterator[CloudBench]:
    clock = Clock()
    proxy = CloudProxy(moto, clock)
    proxy.script.running_after_ms = KIND.delays.acquire_ms
    proxy.script.terminated_after_ms = KIND.delays.terminate_ms
    cluster = f"contract-{next(_numbers)}"
    async with AsyncExitStack() as stack:
        endpoint = stack.enter_context(proxy.running())
        settings = AwsSettings(
            cluster, REGION, IMAGE, ZONES, endpoint=endpoint, calls_per_second=1_000, burst=1_000
        )

        def make() -> AwsCloud:
            cloud = open_ec2(settings, folder, clock, new_cluster=True)
            stack.push_async_callback(cloud.close)
            return cloud

        bench = CloudBench(
            make(), make, clock, clock.advance, clock.advance, zones=ZONES, acquire_ms=0
        )
        yield bench
        await clear(bench)
