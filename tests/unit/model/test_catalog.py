from __future__ import annotations

from itertools import permutations

import pytest

from eva.model.catalog import Catalog, InstanceDelays, InstanceType
from eva.model.resources import Resources

SMALL = InstanceType("small", "c", Resources(0, 2_000, 4_096), 100)
LARGE = InstanceType("large", "c", Resources(0, 8_000, 16_384), 400)
ROOMY = InstanceType("roomy", "r", Resources(0, 8_000, 32_768), 400)
TWIN = InstanceType("twin", "r", Resources(0, 8_000, 32_768), 400)


def test_dearest_first_whatever_the_order_given() -> None:
    for order in permutations((SMALL, LARGE, ROOMY, TWIN)):
        assert [kind.name for kind in Catalog("x", order)] == ["roomy", "twin", "large", "small"]


def test_a_name_is_there_once() -> None:
    with pytest.raises(ValueError, match="twice"):
        Catalog("x", (SMALL, SMALL))


def test_looking_up() -> None:
    catalog = Catalog("x", (SMALL, ROOMY))
    assert catalog.get("small") is SMALL
    assert catalog.get("none") is None
    assert catalog.families == ("c", "r")
    assert len(catalog.with_types([SMALL])) == 1


def test_setup_is_what_is_billed_before_the_first_task() -> None:
    delays = InstanceDelays(acquire_ms=19, start_worker_ms=60, register_worker_ms=130)
    assert delays.setup_ms == 190
