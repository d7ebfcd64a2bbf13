"""What AWS says of prices, read into micro-dollars an hour. Nothing is ever free.

The price list is JSON within JSON, keyed by offers that nobody needs to know; the history of spot
prices has one line per change and zone. A price that is zero, or rounds to it, or is not for an
hour, is not a price: an instance that seems to cost nothing would win every comparison.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from eva.model.units import parse_decimal, usd_to_micros

# What a plain Linux instance is called in the price list. `Used` leaves out reservations.
PRICE_LIST_FILTERS: Mapping[str, str] = {
    "operatingSystem": "Linux",
    "preInstalledSw": "NA",
    "tenancy": "Shared",
    "capacitystatus": "Used",
}


def on_demand_micros(price_list: Iterable[str]) -> dict[str, int]:
    """By type; of several offers for one type the dearest, so that no bill is a surprise."""
    found: dict[str, int] = {}
    for text in price_list:
        offer = json.loads(text)
        name = offer.get("product", {}).get("attributes", {}).get("instanceType", "")
        for term in offer.get("terms", {}).get("OnDemand", {}).values():
            for dimension in term.get("priceDimensions", {}).values():
                price = _hourly(dimension)
                if name and price:
                    found[name] = max(price, found.get(name, 0))
    return found


def spot_micros(history: Iterable[Mapping[str, Any]], zones: Iterable[str]) -> dict[str, int]:
    """By type, the latest price of the cheapest zone that may be used."""
    usable = set(zones)
    latest: dict[tuple[str, str], Mapping[str, Any]] = {}
    for line in history:
        key = (line["InstanceType"], line["AvailabilityZone"])
        if line["AvailabilityZone"] in usable and (
            key not in latest or line["Timestamp"] > latest[key]["Timestamp"]
        ):
            latest[key] = line
    found: dict[str, int] = {}
    for (name, _), line in sorted(latest.items()):
        price = _micros(line["SpotPrice"])
        if price:
            found[name] = min(price, found.get(name, price))
    return found


def _hourly(dimension: Mapping[str, Any]) -> int:
    if dimension.get("unit") != "Hrs":
        return 0
    return _micros(dimension.get("pricePerUnit", {}).get("USD", "0"))


def _micros(usd: str) -> int:
    """0 where there is no price to speak of."""
    try:
        return max(0, usd_to_micros(parse_decimal(usd)))
    except ValueError:
        return 0
