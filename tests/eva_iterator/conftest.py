"""Fixtures of the iterator's tests: a task of this very process, made and ended per test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from eva_iterator.environment import Environment
from eva_iterator.task import Task

INTERVAL_S = 0.02

TaskMaker = Callable[..., Task]


@pytest.fixture
def socket_path(tmp_path: Path) -> Path:
    return tmp_path / "eva.sock"


@pytest.fixture
def make_task(tmp_path: Path, socket_path: Path) -> Iterator[TaskMaker]:
    """Tasks that report fifty times a second, so that tests need not wait."""
    made: list[Task] = []

    def make(**variables: str) -> Task:
        given = {
            "EVA_SOCKET": str(socket_path),
            "EVA_CHECKPOINT_DIR": str(tmp_path / "checkpoints" / "1"),
            **variables,
        }
        task = Task(Environment.read(given), interval_s=INTERVAL_S)
        made.append(task)
        return task

    yield make
    for task in made:
        task.close()
