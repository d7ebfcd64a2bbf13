"""Masters, workers and machines killed at random moments while real tasks run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.live.kill_soak import soak


@pytest.mark.parametrize("seed", [4, 5, 6, 7])  # short ones, which processes can share
def test_kills_at_random_moments(tmp_path: Path, seed: int) -> None:
    killed = soak(tmp_path, kills=13, seed=seed, say=print)
    assert killed["master"] >= 13
    assert killed["worker"] + killed["machine"] >= 13
