from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.moto_server import aws_credentials, moto_address
from tests.unit.adapters.aws.harness import Bench, running

__all__ = ["aws_credentials", "moto_address"]  # fixtures by being here


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def bench(
    moto_address: tuple[str, int], aws_credentials: None, tmp_path: Path
) -> AsyncIterator[Bench]:
    async with running(moto_address, tmp_path, lambda settings: settings) as bench:
        yield bench
