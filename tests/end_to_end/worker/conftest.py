"""A small master per test, and nothing left running after it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.end_to_end.worker.small_master import SmallMaster


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def master(tmp_path: Path) -> AsyncIterator[SmallMaster]:
    master = SmallMaster(tmp_path)
    await master.start()
    yield master
    await master.terminate_all()
    await master.stop()
