"""Prices: what is read out of AWS's answers, how old they are, and what may rest on them."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eva.adapters.aws.connection import Connection, boto_client
from eva.adapters.aws.listing import AwsPriceList
from eva.adapters.aws.pacing import Pacer
from eva.adapters.aws.price_list import on_demand_micros, spot_micros
from eva.adapters.aws.prices import STALE_AFTER_MS, Market, Price, PriceFile, Prices
from eva.adapters.aws.refresh import PriceSources, refresh, remembered
from eva.model.catalog import Catalog, InstanceDelays, InstanceType
from eva.model.resources import Resources
from tests.support.cloud_proxy import LOST_REPLY, CloudProxy, refusal
from tests.support.moto_server import CREDENTIALS, REGION
from tests.support.price_list import offer, products, serve_price_list, serve_spot_prices
from tests.unit.adapters.aws.harness import ZONES, Bench, Clock

NOW_MS = 1_800_000_000_000
DATE = "2027-01-15"
GPU = InstanceType("g4dn.xlarge", "g4dn", Resources(1, 4_000, 16_384), 500_000)
CPU = InstanceType("m5.large", "m5", Resources(0, 2_000, 8_192), 90_000, price_as_of="2026-01-01")
CATALOG = Catalog("test", (GPU, CPU))


def line(name: str, zone: str, usd: str, hour: int = 0) -> dict[str, Any]:
    return {
        "InstanceType": name,
        "AvailabilityZone": zone,
        "SpotPrice": usd,
        "Timestamp": dt.datetime(2026, 1, 1, hour, tzinfo=dt.UTC),
    }


def test_the_price_list_is_read_to_the_micro_dollar() -> None:
    listed = [offer("p3.2xlarge", "3.0600000000"), offer("m5.large", "0.0960000000")]
    assert on_demand_micros(listed) == {"p3.2xlarge": 3_060_000, "m5.large": 96_000}


@pytest.mark.parametrize("usd", ["0.0000000000", "0.0000001", "-1", "", "free", "NaN"])
def test_what_is_free_is_no_price(usd: str) -> None:
    assert on_demand_micros([offer("a.b", usd)]) == {}
    assert spot_micros([line("a.b", "z", usd)], ["z"]) == {}
    assert Prices().refreshed(Market.SPOT, {"a.b": 0}, NOW_MS).of("a.b", Market.SPOT) is None
    with pytest.raises(ValueError, match="no price"):
        Price(0, NOW_MS)


def test_a_price_for_anything_but_an_hour_is_no_price() -> None:
    assert on_demand_micros([offer("a.b", "700", unit="Quantity")]) == {}


def test_of_two_offers_the_dearer_is_planned_with() -> None:
    assert on_demand_micros([offer("a.b", "2"), offer("a.b", "3"), offer("a.b", "0")]) == {
        "a.b": 3_000_000
    }


def test_the_spot_price_is_the_latest_one_of_the_cheapest_usable_zone() -> None:
    history = [
        line("a.b", "z1", "0.10", hour=1),
        line("a.b", "z1", "0.50", hour=2),
        line("a.b", "z2", "0.40", hour=2),
        line("a.b", "z2", "0.20", hour=1),
        line("a.b", "z3", "0.01", hour=2),
    ]
    assert spot_micros(history, ["z1", "z2"]) == {"a.b": 400_000}


@given(st.integers(-3 * STALE_AFTER_MS, 3 * STALE_AFTER_MS))
def test_a_week_makes_a_price_unfit_for_saving(age_ms: int) -> None:
    prices = Prices().refreshed(Market.ON_DEMAND, {"a.b": 1}, NOW_MS - age_ms)
    assert bool(prices.unfit(["a.b"], NOW_MS)) == (abs(age_ms) > STALE_AFTER_MS)


def test_a_missing_price_is_unfit_for_saving() -> None:
    (reason,) = Prices().unfit(["a.b"], NOW_MS)
    assert "a.b" in reason


def test_prices_outlive_the_process(tmp_path: Path) -> None:
    file = PriceFile(tmp_path / "state" / "prices.json")
    assert file.load() == Prices()
    assert "does not exist" in file.problem
    prices = Prices().refreshed(Market.ON_DEMAND, {"a.b": 5}, NOW_MS)
    prices = prices.refreshed(Market.SPOT, {"a.b": 2}, NOW_MS + 1)
    file.save(prices)
    assert file.load() == prices
    assert not file.problem


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"prices": [["spot", "a.b", 0, 1]]}', '{"prices": [["spot"]]}']
)
def test_a_copy_that_is_damaged_is_no_copy(tmp_path: Path, text: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text)
    file = PriceFile(path)
    assert file.load() == Prices()
    assert str(path) in file.problem


# Over HTTP

anyio = pytest.mark.anyio


@asynccontextmanager
async def sources(bench: Bench) -> AsyncIterator[PriceSources]:
    with pytest.MonkeyPatch.context() as environment:
        for name, value in CREDENTIALS.items():
            environment.setenv(name, value)
        price_list = boto_client("pricing", REGION, bench.client.meta.endpoint_url)
    made = []
    for client in (bench.client, price_list):
        pacer = Pacer(1_000, 1_000, bench.clock, random.Random(1))
        made.append(Connection(partial(_itself, client), pacer))
    found = PriceSources(made[0], made[1], REGION, ZONES)
    yield found
    await found.close()


def price_lists(proxy: CloudProxy, *offers: str) -> None:
    proxy.script.answers["GetProducts"] = products(*offers)


def _itself(client: Any) -> Any:
    return client


def a_clock(ms: int = NOW_MS) -> Clock:
    return Clock(ms)


@anyio
async def test_a_refresh_gives_types_with_their_prices(bench: Bench, tmp_path: Path) -> None:
    price_lists(bench.proxy, offer("g4dn.xlarge", "0.526"), offer("m5.large", "0.096"))
    file = PriceFile(tmp_path / "prices.json")
    slow = CATALOG.with_types([GPU, replace(CPU, delays=InstanceDelays(acquire_ms=7))])
    async with sources(bench) as found:
        fresh = await refresh(found, file, slow, a_clock())
    assert (fresh.unfit, fresh.problems) == ([], [])
    gpu, cpu = fresh.catalog.types
    assert (gpu.hourly_micros, gpu.capacity.gpus, gpu.capacity.cpu_millis) == (526_000, 1, 4_000)
    assert (cpu.hourly_micros, cpu.delays.acquire_ms, cpu.price_as_of) == (96_000, 7, DATE)
    assert gpu.spot_hourly_micros == 10, "what moto says of every type: 0.00001"
    assert file.load().of("m5.large") == Price(96_000, NOW_MS)


@anyio
async def test_a_price_on_spot_is_used_for_a_week_and_what_has_none_is_not_on_spot(
    bench: Bench, tmp_path: Path
) -> None:
    """The machine is still to be had on demand, at a price that does not change by the hour."""
    serve_price_list(bench.proxy, CATALOG)
    serve_spot_prices(bench.proxy, {"g4dn.xlarge": "0.2", "m5.large": "0"}, ZONES[0])
    file, clock = PriceFile(tmp_path / "prices.json"), a_clock()
    async with sources(bench) as found:
        fresh = await refresh(found, file, CATALOG, clock)
    assert [kind.spot_hourly_micros for kind in fresh.catalog] == [200_000, None]
    clock.advance(STALE_AFTER_MS)
    assert remembered(file, CATALOG, clock()).catalog.types == fresh.catalog.types
    clock.advance(1)
    old = remembered(file, CATALOG, clock()).catalog
    assert [kind.spot_hourly_micros for kind in old] == [None, None]
    assert [kind.hourly_micros for kind in old] == [kind.hourly_micros for kind in CATALOG]


def test_typical_prices_of_a_catalog_are_none_to_rent_on_spot_by(tmp_path: Path) -> None:
    typical = CATALOG.with_types([replace(GPU, spot_hourly_micros=200_000), CPU])
    known = remembered(PriceFile(tmp_path / "prices.json"), typical, NOW_MS)
    assert [kind.spot_hourly_micros for kind in known.catalog] == [None, None]


@anyio
async def test_what_fails_leaves_the_last_good_copy_with_its_age(
    bench: Bench, tmp_path: Path
) -> None:
    file = PriceFile(tmp_path / "prices.json")
    old_ms = NOW_MS - STALE_AFTER_MS - 1
    file.save(Prices().refreshed(Market.ON_DEMAND, {"g4dn.xlarge": 526_000}, old_ms))
    script = bench.proxy.script
    script.next["GetProducts"].extend([refusal("AccessDeniedException"), LOST_REPLY])
    script.next["DescribeSpotPriceHistory"].append(LOST_REPLY)
    script.next["DescribeInstanceTypes"].append(refusal("UnauthorizedOperation", 403))
    async with sources(bench) as found:
        kept = await refresh(found, file, CATALOG, a_clock())
    assert {kind.name: kind.hourly_micros for kind in kept.catalog} == {
        "g4dn.xlarge": 526_000,
        "m5.large": 90_000,
    }
    assert len(kept.problems) == 3, "who may not ask for one price may not ask for another"
    assert "AccessDeniedException" in kept.problems[0]
    assert [reason.split(":")[0] for reason in kept.unfit] == ["g4dn.xlarge", "m5.large"]
    assert file.load().of("m5.large") is None, "a catalog's price is not a fetched one"


@anyio
async def test_a_zero_on_the_price_list_changes_nothing(bench: Bench, tmp_path: Path) -> None:
    price_lists(bench.proxy, offer("g4dn.xlarge", "0.0"), offer("m5.large", "0.096"))
    async with sources(bench) as found:
        fresh = await refresh(found, PriceFile(tmp_path / "p.json"), CATALOG, a_clock())
    assert {kind.name: kind.hourly_micros for kind in fresh.catalog} == {
        "g4dn.xlarge": 500_000,
        "m5.large": 96_000,
    }
    assert [reason.split(":")[0] for reason in fresh.unfit] == ["g4dn.xlarge"]


@anyio
async def test_a_type_that_the_region_does_not_have_is_left_out(
    bench: Bench, tmp_path: Path
) -> None:
    price_lists(bench.proxy, offer("m5.large", "0.096"))
    gone = InstanceType("zz9.large", "zz9", Resources(0, 1_000, 1_024), 1_000)
    async with sources(bench) as found:
        fresh = await refresh(
            found, PriceFile(tmp_path / "p.json"), Catalog("t", (CPU, gone)), a_clock()
        )
    assert [kind.name for kind in fresh.catalog] == ["m5.large"]
    assert any("zz9.large" in problem for problem in fresh.problems)
    assert fresh.unfit == [], "a price that nobody can pay does not have to be known"


@anyio
async def test_the_price_list_tells_its_age_and_whether_money_may_be_saved_by_it(
    bench: Bench, tmp_path: Path
) -> None:
    """Last good copy, refresh, and a week later without one."""
    p3 = InstanceType("p3.2xlarge", "p3", Resources(1, 8_000, 62_464), 3_000_000)
    catalog = Catalog("test", (p3, CPU))
    clock = a_clock()
    dearer = [replace(kind, hourly_micros=2 * kind.hourly_micros) for kind in catalog]
    serve_price_list(bench.proxy, catalog.with_types(dearer))
    async with sources(bench) as found:
        prices = AwsPriceList(found, PriceFile(tmp_path / "prices.json"), catalog, clock)
        before = prices.last()
        assert [kind.hourly_micros for kind in before.catalog] == [3_000_000, 90_000]
        assert "m5.large: its on-demand price of 2026-01-01 is" in before.unfit
        fresh = await prices.refresh()
        assert [kind.hourly_micros for kind in fresh.catalog] == [6_000_000, 180_000]
        assert (fresh.unfit, fresh.as_of_ms) == ("", NOW_MS)
        clock.advance(STALE_AFTER_MS + 1)
        assert "p3.2xlarge" in prices.last().unfit
        bench.proxy.script.decide = lambda _action: LOST_REPLY
        away = await prices.refresh()
        assert [kind.hourly_micros for kind in away.catalog] == [6_000_000, 180_000]
        assert (away.as_of_ms, "p3.2xlarge" in away.unfit) == (NOW_MS, True)
        assert away.problems


@anyio
@pytest.mark.parametrize(
    "action", ["GetProducts", "DescribeSpotPriceHistory", "DescribeInstanceTypes"]
)
async def test_an_answer_that_makes_no_sense_is_told_and_changes_nothing(
    bench: Bench, tmp_path: Path, action: str
) -> None:
    strange = {
        "GetProducts": products("[]"),
        "DescribeSpotPriceHistory": "<r><spotPriceHistorySet><item/></spotPriceHistorySet></r>",
        "DescribeInstanceTypes": "<r><instanceTypeSet><item/></instanceTypeSet></r>",
    }
    serve_price_list(bench.proxy, CATALOG)
    bench.proxy.script.answers[action] = strange[action]
    async with sources(bench) as found:
        fresh = await refresh(found, PriceFile(tmp_path / "p.json"), CATALOG, a_clock())
    assert [kind.name for kind in fresh.catalog] == [kind.name for kind in CATALOG]
    assert fresh.problems
