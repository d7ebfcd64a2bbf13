from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.cloud.aws import aws_bench
from tests.contract.cloud.bench import CloudBench, clear, fake_bench, local_bench
from tests.support.moto_server import aws_credentials, moto_address

__all__ = ["aws_credentials", "moto_address"]  # fixtures by being here


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["fake", "local", "aws"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CloudBench]:
    if request.param == "aws":
        request.getfixturevalue("aws_credentials")
        async with aws_bench(tmp_path, request.getfixturevalue("moto_address")) as aws:
            yield aws
        return
    bench = fake_bench() if request.param == "fake" else local_bench(tmp_path / "cloud")
    yield bench
    await clear(bench)
