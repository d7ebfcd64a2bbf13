"""The price list of AWS behind its port: fetched, kept on disk, and judged by its age."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from eva.adapters.aws.connection import Connection, boto_client, steady_ms
from eva.adapters.aws.pacing import Pacer
from eva.adapters.aws.prices import PriceFile
from eva.adapters.aws.refresh import (
    PRICE_LIST_REGION,
    PriceSources,
    Refreshed,
    refresh,
    remembered,
)
from eva.adapters.aws.settings import AwsSettings
from eva.model.catalog import Catalog
from eva.ports.prices import Listing

PRICE_FILE = "prices.json"
_TOLD = 3  # types by name, where many are unfit


class AwsPriceList:
    """`catalog` says which types matter; its own prices stand in for those never fetched."""

    def __init__(
        self,
        sources: PriceSources,
        file: PriceFile,
        catalog: Catalog,
        clock: Callable[[], int],
    ) -> None:
        self._sources, self._file = sources, file
        self._catalog, self._clock = catalog, clock

    def last(self) -> Listing:
        return self._listing(remembered(self._file, self._catalog, self._clock()))

    async def refresh(self) -> Listing:
        return self._listing(await refresh(self._sources, self._file, self._catalog, self._clock))

    async def close(self) -> None:
        await self._sources.close()

    def _listing(self, found: Refreshed) -> Listing:
        ages = [
            price.as_of_ms
            for kind in found.catalog
            if (price := found.prices.of(kind.name)) is not None
        ]
        return Listing(
            found.catalog, _in_short(found.unfit), min(ages, default=None), found.problems
        )


def _in_short(reasons: Sequence[str]) -> str:
    told = "; ".join(reasons[:_TOLD])
    more = len(reasons) - _TOLD
    return f"{told}; and {more} more" if more > 0 else told


def open_price_list(
    settings: AwsSettings, folder: Path, catalog: Catalog, clock: Callable[[], int]
) -> AwsPriceList:
    """Kept in `folder`. Refreshing never competes with launching for calls: it has its own pace."""

    def connection(service: str, region: str) -> Connection:
        pacer = Pacer(settings.calls_per_second, settings.burst, steady_ms, random.SystemRandom())
        return Connection(partial(boto_client, service, region, settings.endpoint), pacer)

    sources = PriceSources(
        connection("ec2", settings.region),
        connection("pricing", PRICE_LIST_REGION),
        settings.region,
        settings.usable_zones,
    )
    return AwsPriceList(sources, PriceFile(folder / PRICE_FILE), catalog, clock)
