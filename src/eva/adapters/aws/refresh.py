"""Fetches types and prices from AWS. What fails leaves the last good copy, and is told.

The price list lives in one region only and may be forbidden where EC2 is not, so every source
stands for itself: two that work are used although the third does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eva.adapters.aws.connection import Connection
from eva.adapters.aws.failures import ApiError, Verdict
from eva.adapters.aws.pacing import Urgency
from eva.adapters.aws.price_list import PRICE_LIST_FILTERS, on_demand_micros, spot_micros
from eva.adapters.aws.prices import Market, PriceFile, Prices
from eva.adapters.aws.types import TypeShape, priced_catalog, shapes
from eva.model.catalog import Catalog

PRICE_LIST_REGION = "us-east-1"
_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)  # an answer of another shape
_PATIENCE = 3  # failures of one source before it is left alone until the next time


@dataclass(frozen=True, slots=True)
class Refreshed:
    """`unfit` is empty where the prices may be used for more than renting; `problems` is news."""

    catalog: Catalog
    prices: Prices
    unfit: Sequence[str]
    problems: Sequence[str]


def _known(catalog: Catalog) -> list[TypeShape]:
    return [TypeShape(kind.name, kind.capacity) for kind in catalog]


class PriceSources:
    """`price_list` is a connection to the service `pricing`, in the region that has it."""

    def __init__(
        self, ec2: Connection, price_list: Connection, region: str, zones: Sequence[str]
    ) -> None:
        self._ec2, self._price_list = ec2, price_list
        self._region, self._zones = region, zones

    async def types(self, names: Sequence[str]) -> list[TypeShape]:
        """By filter, which passes over what the region does not have."""
        wanted = [{"Name": "instance-type", "Values": list(names)}]
        return shapes(
            await self._ec2.pages(
                Urgency.REFRESH, "describe_instance_types", "InstanceTypes", Filters=wanted
            )
        )

    async def on_demand(self, name: str) -> dict[str, int]:
        wanted = {**PRICE_LIST_FILTERS, "regionCode": self._region, "instanceType": name}
        filters = [
            {"Type": "TERM_MATCH", "Field": field, "Value": value}
            for field, value in wanted.items()
        ]
        found = await self._price_list.pages(
            Urgency.REFRESH,
            "get_products",
            "PriceList",
            ServiceCode="AmazonEC2",
            Filters=filters,
        )
        return on_demand_micros(map(str, found))

    async def spot(self, names: Sequence[str], now_ms: int) -> dict[str, int]:
        history = await self._ec2.pages(
            Urgency.REFRESH,
            "describe_spot_price_history",
            "SpotPriceHistory",
            InstanceTypes=list(names),
            ProductDescriptions=["Linux/UNIX"],
            StartTime=now_ms // 1_000,  # from now on is what holds now
        )
        return spot_micros(history, self._zones)

    async def close(self) -> None:
        await self._ec2.close()
        await self._price_list.close()


async def refresh(
    sources: PriceSources, file: PriceFile, before: Catalog, clock: Callable[[], int]
) -> Refreshed:
    """The types of the catalog `before`, as they are now as far as could be found out.

    Its own prices, with their dates, stand in for those that were never fetched; its delays stay.
    """
    names = [kind.name for kind in before]
    fetched, problems = await _prices(sources, file.load(), names, clock())
    file.save(fetched)
    found = await _types(sources, before, problems)
    return _refreshed(before, found, fetched, clock(), problems)


def remembered(file: PriceFile, before: Catalog, now_ms: int) -> Refreshed:
    """As of the last good copy, without asking anybody."""
    prices = file.load()
    return _refreshed(before, _known(before), prices, now_ms, [file.problem] * bool(file.problem))


def _refreshed(
    before: Catalog,
    found: Sequence[TypeShape],
    fetched: Prices,
    now_ms: int,
    problems: Sequence[str],
) -> Refreshed:
    prices = fetched.completed(before)
    delays = {kind.family: kind.delays for kind in before}
    catalog, left_out = priced_catalog(before.name, found, prices, delays, now_ms)
    unfit = prices.unfit([kind.name for kind in catalog], now_ms)
    return Refreshed(catalog, prices, unfit, [*problems, *left_out])


async def _prices(
    sources: PriceSources, prices: Prices, names: Sequence[str], now_ms: int
) -> tuple[Prices, list[str]]:
    problems = []
    failures = 0
    for name in names:
        try:
            found = await sources.on_demand(name)
            prices = prices.refreshed(Market.ON_DEMAND, found, now_ms)
        except _UNREADABLE as error:
            problems.append(f"on-demand price of {name}: unreadable ({error!r})")
        except ApiError as error:
            problems.append(f"on-demand price of {name}: {error}")
            failures += 1
            if failures >= _PATIENCE or error.verdict is Verdict.NEVER:
                break  # what is forbidden or gone for one type is so for all
    try:
        prices = prices.refreshed(Market.SPOT, await sources.spot(names, now_ms), now_ms)
    except (ApiError, *_UNREADABLE) as error:
        problems.append(f"spot prices: {error!r}")
    return prices, problems


async def _types(
    sources: PriceSources, before: Catalog, problems: list[str]
) -> Sequence[TypeShape]:
    known = _known(before)
    try:
        found = {shape.name: shape for shape in await sources.types([s.name for s in known])}
    except (ApiError, *_UNREADABLE) as error:
        problems.append(f"instance types: {error!r}")
        return known
    if not found:
        problems.append("instance types: this region is said to have none of the catalog's")
        return known
    missing = [shape.name for shape in known if shape.name not in found]
    problems.extend(f"{name}: this region does not have it" for name in missing)
    return list(found.values())
