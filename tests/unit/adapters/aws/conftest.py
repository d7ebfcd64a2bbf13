from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cloud_proxy import CloudProxy
from tests.support.moto_server import moto_address
from tests.unit.adapters.aws.harness import Bench, Clock, connected, new_bench

__all__ = ["moto_address"]  # a fixture by being here


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def connection(moto_address: tuple[str, int]) -> Iterator[tuple[CloudProxy, Clock, Any]]:
    with connected(moto_address) as made:
        yield made


@pytest.fixture
async def bench(connection: tuple[CloudProxy, Clock, Any], tmp_path: Path) -> AsyncIterator[Bench]:
    async with new_bench(tmp_path, *connection) as bench:
        yield bench
