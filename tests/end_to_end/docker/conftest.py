"""A cluster of its own per test on the machine's engine, and nothing of it left afterwards."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import docker
import pytest

from eva.model.ids import InstanceId
from eva.ports.runtime import Home
from tests.contract.runtime.bench import Bench, clear, docker_bench
from tests.support.images import busybox


@pytest.fixture(scope="session")
def busybox_image() -> Iterator[str]:
    with busybox("end-to-end") as image:
        yield image


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def engine(busybox_image: str) -> Iterator[docker.APIClient]:
    """The engine as others see it."""
    client = docker.APIClient(version="auto")
    yield client
    client.close()


@pytest.fixture
async def bench(
    busybox_image: str, engine: docker.APIClient, tmp_path: Path
) -> AsyncIterator[Bench]:
    home = Home(f"test-{uuid.uuid4().hex[:8]}", InstanceId("i-1"))
    bench = docker_bench(home, tmp_path / "state", busybox_image)
    yield bench
    await clear(bench)
    label = {"label": f"eva.cluster={home.cluster}"}
    for image in engine.images(filters=label, quiet=True):
        engine.remove_image(image, force=True)
    assert engine.containers(all=True, filters=label) == []
    assert engine.networks(filters=label) == []
