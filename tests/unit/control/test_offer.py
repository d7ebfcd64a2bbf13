"""What is on offer: refused types wait, plans follow at once, prices change under what runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eva.control.commands import ComputePlan, LaunchInstance
from eva.control.controller import Controller
from eva.control.events import (
    CatalogChanged,
    InstanceAcquired,
    InstanceTerminated,
    LaunchRefused,
    PlanComputed,
    PlanFailed,
    RoundDue,
)
from eva.control.invariants import check_touched
from eva.control.journal import Codec, digest, fold
from eva.control.settings import ControllerSettings
from eva.model.catalog import Catalog, InstanceType
from eva.model.errors import InvariantError
from eva.model.ids import InstanceId
from eva.model.resources import Resources
from eva.model.snapshot import ClusterSnapshot
from eva.model.units import cost_micros
from eva.scheduling.eva import EvaPolicy
from tests.unit.control.bench import BIG, CATALOG, SMALL, Bench, of

I1 = InstanceId("i-1")
ASIDE_MS = ControllerSettings().set_aside_ms


def refused(bench: Bench, name: str = "i-1", *, type_refused: bool = True) -> list[ComputePlan]:
    return of(ComputePlan, bench.send(LaunchRefused(InstanceId(name), "no capacity", type_refused)))


def offered(snapshot: ClusterSnapshot | None) -> list[str]:
    assert snapshot is not None
    return [kind.name for kind in snapshot.catalog]


def plan_with_eva(bench: Bench) -> list[LaunchInstance]:
    assert bench.snapshot is not None
    assert bench.state.planning is not None
    plan = EvaPolicy().plan(bench.snapshot)
    return of(LaunchInstance, bench.send(PlanComputed(bench.state.planning, plan)))


def test_a_refusal_sets_the_type_aside_and_asks_for_a_plan_without_it() -> None:
    bench = Bench()
    bench.submit("a")
    bench.round((SMALL, ("a.0",)))
    (asked,) = refused(bench)
    assert offered(asked.snapshot) == ["big"]
    assert [task.id for task in asked.snapshot.tasks] == ["a.0"]
    (launch,) = plan_with_eva(bench)
    assert launch.type is BIG


def test_it_is_back_when_its_time_is_over() -> None:
    bench = Bench()
    bench.submit("a")
    bench.round((SMALL, ("a.0",)))
    refused(bench)
    bench.adopt()
    bench.send(RoundDue())
    assert offered(bench.snapshot) == ["big"]
    bench.adopt()
    bench.now_ms += ASIDE_MS
    bench.send(RoundDue())
    assert bench.snapshot is not None
    assert bench.snapshot.catalog is CATALOG
    assert not bench.state.set_aside


def test_catalogs_are_shared_while_the_same_is_set_aside() -> None:
    """Prices are worked out once per catalog, and catalogs are told apart by identity."""
    bench = Bench()
    bench.submit("a")
    bench.round((SMALL, ("a.0",)))
    (asked,) = refused(bench)
    bench.adopt()
    bench.send(RoundDue())
    assert bench.snapshot is not None
    assert bench.snapshot.catalog is asked.snapshot.catalog


def test_what_fits_only_the_refused_type_waits_and_is_told_why() -> None:
    bench = Bench()
    bench.submit("a")
    bench.round((SMALL, ("a.0",)))
    refused(bench)
    assert plan_with_eva(bench)
    refused(bench, "i-2")
    assert offered(bench.snapshot) == []
    assert plan_with_eva(bench) == []
    assert "refused by the cloud just now" in bench.task("a.0").reason
    bench.now_ms += ASIDE_MS
    bench.send(RoundDue())
    (launch,) = plan_with_eva(bench)
    assert launch.type is SMALL


def test_a_plan_that_is_being_computed_is_followed_by_another() -> None:
    bench = Bench()
    bench.submit("a")
    bench.submit("b")
    bench.round((SMALL, ("a.0",)))
    bench.send(RoundDue())
    assert refused(bench) == []
    commands = bench.adopt((SMALL, ("a.0", "b.0")))
    assert of(LaunchInstance, commands) == []  # it was refused meanwhile
    (asked,) = of(ComputePlan, commands)
    assert offered(asked.snapshot) == ["big"]
    assert of(ComputePlan, bench.adopt()) == []


def test_so_is_one_that_failed() -> None:
    bench = Bench()
    bench.submit("a")
    bench.round((SMALL, ("a.0",)))
    bench.send(RoundDue())
    assert refused(bench) == []
    assert bench.state.planning is not None
    failed = PlanFailed(bench.state.planning, "the planning process died")
    assert len(of(ComputePlan, bench.send(failed))) == 1


def test_a_refusal_of_everything_sets_nothing_aside() -> None:
    """Credentials that expired say nothing about a type; the next round asks again."""
    bench = Bench()
    bench.submit("a")
    bench.round((SMALL, ("a.0",)))
    assert refused(bench, type_refused=False) == []
    assert not bench.state.set_aside
    assert of(LaunchInstance, bench.round((SMALL, ("a.0",))))


def test_a_family_of_which_nothing_is_left_can_still_be_valued() -> None:
    """Its instances are there, with tasks of whose other families there is more."""
    cpu = InstanceType("cpu", "c7i", Resources(0, 16_000, 64_000), 700_000)
    left = Catalog("two", (cpu, SMALL)).offering([cpu])
    assert left.families == ("c7i", "p3")
    assert left.cheapest("p3", Resources(0, 1, 1)) is None


def test_launching_what_is_set_aside_is_a_broken_promise() -> None:
    bench = Bench()
    bench.state.set_aside["small"] = 10
    with pytest.raises(InvariantError, match="set aside until 10 ms"):
        check_touched(bench.state, RoundDue(), [LaunchInstance(I1, SMALL)])


# Prices

DEARER = tuple(replace(kind, hourly_micros=2 * kind.hourly_micros) for kind in CATALOG)


def test_new_prices_are_for_new_instances() -> None:
    bench = Bench()
    bench.submit("a")
    bench.submit("b")
    bench.round((SMALL, ("a.0",)))
    bench.send(InstanceAcquired(I1), CatalogChanged(DEARER))
    (launch,) = of(LaunchInstance, bench.round((SMALL, ("b.0",))))  # planned at the old price
    assert launch.type.hourly_micros == 2 * SMALL.hourly_micros
    assert [account.hourly_micros for account in bench.state.ledger] == [
        SMALL.hourly_micros,
        2 * SMALL.hourly_micros,
    ]
    since_ms = bench.now_ms
    before = bench.state.ledger.bill_micros(since_ms)
    hour_ms = 3_600_000
    assert bench.state.ledger.bill_micros(since_ms + hour_ms) - before == cost_micros(
        SMALL.hourly_micros, hour_ms
    )


def test_a_type_that_is_no_longer_listed_is_not_launched() -> None:
    bench = Bench()
    bench.submit("a")
    bench.send(RoundDue(), CatalogChanged((BIG,)))
    assert of(LaunchInstance, bench.adopt((SMALL, ("a.0",)))) == []
    assert of(LaunchInstance, bench.round((BIG, ("a.0",))))


def test_unfit_prices_leave_what_runs_where_it_is() -> None:
    bench = Bench()
    bench.submit("a")
    bench.running((BIG, ("a.0",)))
    bench.submit("b")
    bench.send(CatalogChanged(CATALOG.types, "they are old"), RoundDue())
    assert bench.snapshot is not None
    assert {task.id: task.movable for task in bench.snapshot.tasks} == {"a.0": False, "b.0": True}
    assert plan_with_eva(bench) == []  # there is room beside it, and it stays although too dear
    assert bench.task("b.0").home is bench.task("a.0").home
    bench.send(CatalogChanged(CATALOG.types), RoundDue())
    assert bench.snapshot.tasks[0].movable


def test_evicted_tasks_are_placed_whatever_the_prices() -> None:
    bench = Bench()
    bench.submit("a")
    bench.running((SMALL, ("a.0",)))
    bench.send(CatalogChanged(CATALOG.types, "they are old"), InstanceTerminated(I1), RoundDue())
    (launch,) = plan_with_eva(bench)
    assert launch.type is SMALL


def test_all_of_it_is_folded_from_the_journal() -> None:
    bench = Bench()
    bench.submit("a")
    bench.round((SMALL, ("a.0",)))
    bench.send(RoundDue(), CatalogChanged(DEARER, "they are old"))
    refused(bench)
    codec = Codec(CATALOG)
    read = [codec.decode(codec.encode(now_ms, event)) for now_ms, event in bench.journal]
    assert read == bench.journal
    folded = fold(read, Controller(CATALOG))
    assert digest(folded.state) == digest(bench.state)
    assert (folded.state.replan, list(folded.state.set_aside)) == (True, ["small"])
    assert [kind.hourly_micros for kind in folded.offer.catalog] == [12_000_000, 6_000_000]


def test_records_of_before_a_field_was_there_are_read() -> None:
    codec = Codec(CATALOG)
    record = codec.encode(1, LaunchRefused(I1, "no capacity"))
    del record["type_refused"]
    assert codec.decode(record) == (1, LaunchRefused(I1, "no capacity"))
