"""Instance types as EC2 describes them, and the catalog that comes of them with their prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from eva.adapters.aws.prices import Market, Prices
from eva.model.catalog import Catalog, InstanceDelays, InstanceType
from eva.model.resources import Resources
from eva.model.units import MILLIS_PER_CPU


@dataclass(frozen=True, slots=True)
class TypeShape:
    """What a type has, without what it costs."""

    name: str
    capacity: Resources

    @property
    def family(self) -> str:
        return self.name.split(".", 1)[0]


def shapes(described: Iterable[Mapping[str, Any]]) -> list[TypeShape]:
    return sorted((_shape(raw) for raw in described), key=lambda shape: shape.name)


def priced_catalog(
    name: str,
    found: Iterable[TypeShape],
    prices: Prices,
    delays: Mapping[str, InstanceDelays],
    now_ms: int,
) -> tuple[Catalog, list[str]]:
    """The types that have a price, and why the others were left out. `delays` are by family.

    An old price on demand is still good enough to rent by; an old one on spot is not, since there
    is another way to rent the same machine, whose price does not change by the hour.
    """
    types, left_out = [], []
    for shape in found:
        price = prices.of(shape.name)
        if price is None:
            left_out.append(f"{shape.name}: no price is known, and it is not free")
            continue
        unfit = prices.unfit([shape.name], now_ms, Market.SPOT)
        spot = None if unfit else prices.of(shape.name, Market.SPOT)
        types.append(
            InstanceType(
                shape.name,
                shape.family,
                shape.capacity,
                price.hourly_micros,
                delays.get(shape.family, InstanceDelays()),
                spot.hourly_micros if spot else None,
                min(price.date, spot.date) if spot else price.date,
            )
        )
    return Catalog(name, tuple(types)), left_out


def _shape(raw: Mapping[str, Any]) -> TypeShape:
    gpus = sum(gpu.get("Count", 0) for gpu in raw.get("GpuInfo", {}).get("Gpus", ()))
    return TypeShape(
        raw["InstanceType"],
        Resources(
            gpus,
            raw["VCpuInfo"]["DefaultVCpus"] * MILLIS_PER_CPU,
            raw["MemoryInfo"]["SizeInMiB"],
        ),
    )
