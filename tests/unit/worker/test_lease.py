"""The lease of a machine: renewed by words of the master, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from eva.worker.lease import MARGIN_S, RENEWED_EVERY_S, Lease


class Uptime:
    now_s = 1_000.5


@pytest.fixture
def uptime() -> Iterator[Uptime]:
    with patch("eva.worker.lease.time.clock_gettime", lambda _: Uptime.now_s):
        yield Uptime()


def test_it_lasts_as_long_as_the_master_says_and_a_margin(tmp_path: Path, uptime: Uptime) -> None:
    path = tmp_path / "lease"
    lease = Lease(path)
    assert not path.exists()
    lease.renew(1_800_000)
    assert path.read_text() == f"{1_000 + 1_800 + MARGIN_S}\n"
    assert [each.name for each in tmp_path.iterdir()] == ["lease"]


def test_it_is_not_written_at_every_word(tmp_path: Path, uptime: Uptime) -> None:
    path = tmp_path / "lease"
    lease = Lease(path)
    lease.renew(1_000)
    path.unlink()
    with patch.object(Uptime, "now_s", Uptime.now_s + RENEWED_EVERY_S - 1):
        lease.renew(1_000)
        assert not path.exists()
    with patch.object(Uptime, "now_s", Uptime.now_s + RENEWED_EVERY_S):
        lease.renew(1_000)
        assert path.exists()


def test_where_it_cannot_be_written_nobody_is_harmed(tmp_path: Path, uptime: Uptime) -> None:
    Lease(tmp_path / "no" / "lease").renew(1_000)
