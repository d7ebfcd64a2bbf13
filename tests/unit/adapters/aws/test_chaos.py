"""Never twice, never leaked, never wrongly ended: random faults and kills, by seed.

`EVA_CHAOS_SEEDS` says how many; the default is what the suite has time for, a hundred kills.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.cloud_proxy import CloudProxy
from tests.unit.adapters.aws.chaos import Chaos, Fuse, fuse_the_book
from tests.unit.adapters.aws.harness import Clock, new_bench

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
SEEDS = int(os.environ.get("EVA_CHAOS_SEEDS", "10"))
KILLS = 10  # of each seed


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_bad_time_leaves_nothing_behind(
    seed: int,
    connection: tuple[CloudProxy, Clock, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("eva.adapters.aws.connection._TIMES", 1)  # the master asks again anyway
    monkeypatch.setattr("eva.adapters.aws.pacing._FIRST_PENALTY_MS", 1)
    monkeypatch.setattr("eva.adapters.aws.pacing._LONGEST_PENALTY_MS", 1)
    fuse = Fuse()
    fuse_the_book(monkeypatch, fuse)
    async with new_bench(tmp_path, *connection) as bench:
        chaos = Chaos(seed, bench, tmp_path, fuse)
        await chaos.bad_time(steps=20, kills=KILLS)
        await chaos.good_time()
        assert chaos.master.kills >= KILLS
        chaos.check_nothing_leaked()
        chaos.check_nothing_wrongly_ended()
