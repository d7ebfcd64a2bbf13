from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.cloud.bench import CloudBench, clear, fake_bench, local_bench


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["fake", "local"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CloudBench]:
    bench = fake_bench() if request.param == "fake" else local_bench(tmp_path / "cloud")
    yield bench
    await clear(bench)
