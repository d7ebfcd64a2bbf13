"""What moto does not have: a price list, and types such as p3. Answered from a catalog of ours."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping
from xml.sax.saxutils import escape

from eva.model.catalog import Catalog, InstanceType
from eva.model.units import micros_to_usd
from tests.support.cloud_proxy import NAMESPACE, CloudProxy


def offer(name: str, usd: str, unit: str = "Hrs") -> str:
    """One line of the price list, as AWS nests it."""
    dimension = {"unit": unit, "pricePerUnit": {"USD": usd}}
    terms = {"OnDemand": {"X.Y": {"priceDimensions": {"X.Y.Z": dimension}}}}
    return json.dumps({"product": {"attributes": {"instanceType": name}}, "terms": terms})


def products(*offers: str) -> str:
    return json.dumps({"FormatVersion": "aws_v1", "PriceList": list(offers)})


def serve_price_list(proxy: CloudProxy, catalog: Catalog) -> None:
    """The catalog's types at its prices, until the proxy is reset."""

    def get_products(body: bytes) -> str:
        wanted = {each["Field"]: each["Value"] for each in json.loads(body)["Filters"]}
        kind = catalog.get(wanted["instanceType"])
        return products(*([] if kind is None else [_offer(kind)]))

    def describe_types(body: bytes) -> str:
        asked = dict(urllib.parse.parse_qsl(body.decode()))
        names = [value for key, value in asked.items() if key.startswith("Filter.1.Value.")]
        found = [kind for name in names if (kind := catalog.get(name)) is not None]
        return (
            f'<DescribeInstanceTypesResponse xmlns="{NAMESPACE}"><instanceTypeSet>'
            f"{''.join(map(_described, found))}</instanceTypeSet></DescribeInstanceTypesResponse>"
        )

    proxy.script.answers |= {
        "GetProducts": get_products,
        "DescribeInstanceTypes": describe_types,
    }


def serve_spot_prices(proxy: CloudProxy, usd_by_type: Mapping[str, str], zone: str) -> None:
    """These and no others, until the proxy is reset."""
    lines = "".join(
        f"<item><instanceType>{escape(name)}</instanceType><spotPrice>{usd}</spotPrice>"
        f"<availabilityZone>{zone}</availabilityZone><timestamp>2026-01-01T00:00:00Z</timestamp>"
        "<productDescription>Linux/UNIX</productDescription></item>"
        for name, usd in usd_by_type.items()
    )
    proxy.script.answers["DescribeSpotPriceHistory"] = (
        f'<DescribeSpotPriceHistoryResponse xmlns="{NAMESPACE}"><spotPriceHistorySet>{lines}'
        "</spotPriceHistorySet></DescribeSpotPriceHistoryResponse>"
    )


def _offer(kind: InstanceType) -> str:
    return offer(kind.name, str(micros_to_usd(kind.hourly_micros)))


def _described(kind: InstanceType) -> str:
    gpus, millis, memory_mib = kind.capacity
    gpu_info = f"<gpuInfo><gpus><item><count>{gpus}</count></item></gpus></gpuInfo>"
    return (
        f"<item><instanceType>{escape(kind.name)}</instanceType>"
        f"<vCpuInfo><defaultVCpus>{millis // 1_000}</defaultVCpus></vCpuInfo>"
        f"<memoryInfo><sizeInMiB>{memory_mib}</sizeInMiB></memoryInfo>"
        f"{gpu_info if gpus else ''}</item>"
    )
