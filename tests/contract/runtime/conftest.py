"""One bench per runtime, and nothing left behind by any."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from eva.adapters.machine import discard
from eva.model.ids import InstanceId
from eva.ports.runtime import Home
from tests.contract.runtime.bench import (
    Bench,
    clear,
    docker_bench,
    fake_bench,
    process_bench,
)
from tests.support.images import busybox


@pytest.fixture(scope="session")
def busybox_image() -> Iterator[str]:
    with busybox("contract") as image:
        yield image


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def make_bench(name: str, folder: Path, request: pytest.FixtureRequest) -> Bench:
    home = Home(f"test-{uuid.uuid4().hex[:8]}", InstanceId("i-1"))
    if name == "fake":
        return fake_bench(home)
    if name == "process":
        return process_bench(home, folder)
    return docker_bench(home, folder, request.getfixturevalue("busybox_image"))


@pytest.fixture(params=["fake", "process", "docker"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    bench = make_bench(request.param, tmp_path, request)
    yield bench
    await clear(bench)
    discard(tmp_path)


@pytest.fixture(params=["process", "docker"])
async def real_bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    bench = make_bench(request.param, tmp_path, request)
    yield bench
    await clear(bench)
    discard(tmp_path)
