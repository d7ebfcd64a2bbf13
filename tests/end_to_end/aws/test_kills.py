"""A hundred kills of a real master that rents from an EC2 that misbehaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.aws.bad_time import kill_again_and_again
from tests.support.moto_server import aws_credentials, moto_address

__all__ = ["aws_credentials", "moto_address"]  # fixtures by being here
KILLS = 25  # of each seed: four of them make a hundred


@pytest.mark.usefixtures("aws_credentials")
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_bad_time_leaves_nothing_and_ends_nothing_that_is_wanted(
    tmp_path: Path, moto_address: tuple[str, int], seed: int
) -> None:
    killed = kill_again_and_again(tmp_path / "home", moto_address, KILLS, seed, print)
    assert sum(killed.values()) == KILLS
