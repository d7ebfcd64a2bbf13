"""A journal read by somebody who is not its master."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from eva.adapters.sqlite import open_journal
from eva.adapters.stores import JOURNAL_FILE
from eva.inputs.catalogs import builtin
from eva.master.intents import CLUSTER_FACT, Intents, read_intents
from eva.master.service import Master
from eva.model.errors import InputError, OperatorError
from eva.model.ids import InstanceId
from eva.ports.journal import Fact
from tests.support.small_cluster import CATALOG
from tests.unit.master.conftest import Bench, until

NAME = "eva-12345678"


def read(home: Path) -> Intents | None:
    return read_intents(None, home, builtin("paper"))


def name_it(master: Master) -> None:
    """As `eva serve` does at the first start."""
    master.around.journal.put_fact(master.lease, Fact(CLUSTER_FACT, NAME.encode(), 0))


def test_instances_are_known_while_they_are_there_and_no_longer(bench: Bench) -> None:
    """Beside the living master, after its crash, and when all is over."""
    bench.journal = open_journal(bench.home / JOURNAL_FILE)  # type: ignore[assignment]  # on disk

    async def story() -> None:
        name_it(await bench.start())
        assert read(bench.home) == Intents(NAME, frozenset())
        job = await bench.submit()
        await until(lambda: bench.world.running(f"{job}.0"))
        known = Intents(NAME, frozenset(map(InstanceId, bench.world.cloud.intents)))
        assert len(known.open) == 1
        assert read(bench.home) == known
        await bench.crash()
        assert read(bench.home) == known
        master = await bench.start()
        bench.world.finish(f"{job}.0")
        await until(lambda: not master.state.instances and master.state.records)
        assert read(bench.home) == Intents(NAME, frozenset())
        await master.stop()
        assert read(bench.home) == Intents(NAME, frozenset()), "from the snapshot"

    try:
        asyncio.run(story())
    finally:
        bench.journal.close()


def test_where_there_is_no_journal_none_is_made(tmp_path: Path) -> None:
    assert read(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="--store: there is no journal at"):
        read_intents(str(tmp_path / "none.db"), tmp_path, builtin("paper"))


def test_a_journal_that_no_master_began_knows_nothing(tmp_path: Path) -> None:
    open_journal(tmp_path / JOURNAL_FILE).close()
    assert read(tmp_path) is None


def test_a_journal_under_another_price_list_is_refused(bench: Bench) -> None:
    bench.journal = open_journal(bench.home / JOURNAL_FILE)  # type: ignore[assignment]  # on disk

    async def story() -> None:
        name_it(await bench.start())
        job = await bench.submit()
        await until(lambda: bench.world.running(f"{job}.0"))
        await bench.crash()

    try:
        asyncio.run(story())
        with pytest.raises(OperatorError, match="start with the catalog it was written under"):
            read_intents(None, bench.home, CATALOG)
    finally:
        bench.journal.close()
