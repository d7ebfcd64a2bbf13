"""Every test of the contract runs over every adapter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eva.ports.journal import Journal
from tests.contract.journal.stores import MemoryStore, Store, postgres_store, sqlite_store
from tests.support.postgres import postgres_server

__all__ = ["postgres_server"]  # a fixture by being here


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "memory":
        made: Store = MemoryStore()
    elif request.param == "sqlite":
        made = sqlite_store(tmp_path)
    else:
        made = postgres_store(request.getfixturevalue("postgres_server"))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def journal(store: Store) -> Journal:
    return store.open()
