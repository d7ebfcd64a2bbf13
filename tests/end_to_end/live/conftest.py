"""Clusters that tests share, and their end: nothing of them may be left on the machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.live.cluster import LiveCluster


@pytest.fixture(scope="session", autouse=True)
def this_python_first() -> Iterator[None]:
    """What tasks find as `python` is the one that runs the tests, with its packages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        yield


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    """One cluster for the tests of a module that do not hurt it."""
    yield from _cluster(tmp_path_factory.mktemp("cluster"))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    """A cluster of one's own, to be hurt."""
    yield from _cluster(tmp_path)


def _cluster(home: Path) -> Iterator[LiveCluster]:
    cluster = LiveCluster(home)
    cluster.start()
    yield cluster
    cluster.down()
    cluster.until_empty()
