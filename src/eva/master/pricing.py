"""Prices kept up to date: asked for now and then, journalled when they changed, shown with age.

What is offered is part of the controller's state, so it changes by an event like everything else;
a journal then says under which prices each plan was made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from eva.control.events import CatalogChanged, Event
from eva.master.memory import Memory
from eva.model.catalog import Catalog
from eva.model.errors import EvaError
from eva.model.units import MS_PER_SECOND
from eva.ports.prices import Listing, PriceList

_log = structlog.get_logger("eva.prices")


@dataclass(frozen=True, slots=True)
class Priced:
    """Where prices come from, and what is offered at such prices."""

    source: PriceList
    offered: Callable[[Catalog], Catalog]


@dataclass(slots=True)
class Pricing:
    """`every_ms` apart where all went well, `again_ms` where something did not."""

    memory: Memory
    priced: Priced | None
    post: Callable[[Event], Awaitable[object]]
    every_ms: int
    again_ms: int
    listing: Listing | None = field(default=None, init=False)

    async def begin(self) -> None:
        """From the last good copy, before any plan is made."""
        if self.priced is not None:
            await self._adopt(self.priced, await asyncio.to_thread(self.priced.source.last))

    async def watch(self) -> None:
        """For ever; returns at once where prices never change."""
        while self.priced is not None:
            wait_ms = self.again_ms
            try:
                listing = await self.priced.source.refresh()
                for problem in listing.problems:
                    _log.warning("price list", problem=problem)
                await self._adopt(self.priced, listing)
                wait_ms = self.again_ms if listing.problems else self.every_ms
            except EvaError as error:
                _log.error("prices not refreshed", reason=str(error))
            await asyncio.sleep(wait_ms / MS_PER_SECOND)

    async def close(self) -> None:
        if self.priced is not None:
            await self.priced.source.close()

    async def _adopt(self, priced: Priced, listing: Listing) -> None:
        self.listing = listing
        types, state = priced.offered(listing.catalog).types, self.memory.state
        if types != self.memory.controller.offer.catalog.types or listing.unfit != (
            state.prices_unfit
        ):
            _log.info("prices", types=len(types), unfit=listing.unfit)
            await self.post(CatalogChanged(types, listing.unfit))
