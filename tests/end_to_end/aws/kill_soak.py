"""Kill a real master that rents from EC2, as `bad_time` says, for as long as you like.

`python -m tests.end_to_end.aws.kill_soak --kills 200 [--seed 1]`: so many kills, of clusters of
fifty each.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

_KILLS_OF_A_CLUSTER = 50
_PROMISE = "none launched twice, none wrongly ended, none left after five good minutes"


def soak(home: Path, kills: int, seed: int, say: Callable[[str], object]) -> Counter[str]:
    """How many kills of which kind."""
    # Every process that is forked warm imports this module anew, so it imports little itself.
    from tests.end_to_end.aws.bad_time import kill_again_and_again  # noqa: PLC0415
    from tests.support.moto_server import credentials_set, running_moto  # noqa: PLC0415

    killed: Counter[str] = Counter()
    with credentials_set(), running_moto() as moto:
        while (left := kills - sum(killed.values())) > 0:
            folder = home / f"seed-{seed}"
            killed += kill_again_and_again(folder, moto, min(left, _KILLS_OF_A_CLUSTER), seed, say)
            seed += 1
    return killed


if __name__ == "__main__":
    from tests.end_to_end.live.feed import run_soak

    sys.exit(run_soak(__doc__ or "", 200, soak, _PROMISE))
