"""Prices: what the cloud says that its instances cost, and how far that may be trusted.

A price that is old is still good enough to rent by, since somebody has to run the jobs. It is not
good enough to interrupt jobs that run. Nothing is ever free: what has no price is not listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from eva.model.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Listing:
    """`unfit` says why no migration that only saves money may rest on it; `problems` is news.

    `as_of_ms` is the date of the oldest price in it; None where there is none.
    """

    catalog: Catalog
    unfit: str
    as_of_ms: int | None
    problems: Sequence[str] = ()


class PriceList(Protocol):
    """Adapters: aws. Other clouds have the prices of their catalog, which never change."""

    def last(self) -> Listing:
        """What is known without asking anybody: the last good copy, with its age."""
        ...

    async def refresh(self) -> Listing:
        """Ask for all of it. What cannot be had stays as it was, and is told."""
        ...

    async def close(self) -> None: ...
