"""What a test needs from the machine, and what happens where it is missing.

On a laptop a test that needs Docker is skipped with the reason; in CI (`EVA_REQUIRE_ALL=1`) the
same is a failure, because a skip that nobody reads is a test that does not exist.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def everything_required() -> bool:
    return os.environ.get("EVA_REQUIRE_ALL") == "1"


def require(condition: object, reason: str) -> None:
    """Go on only where `condition` holds; otherwise skip with `reason`, or fail in CI."""
    if condition:
        return
    if everything_required():
        pytest.fail(f"required, and missing: {reason}", pytrace=False)
    pytest.skip(reason)


def shared_folder() -> Path | None:
    """The folder of published traces and figures beside the repository, where there is one.

    Tests that need it carry the mark `published`.
    """
    folder = Path(os.environ.get("EVA_SHARED") or REPOSITORY.parent / "shared")
    return folder if folder.is_dir() else None
