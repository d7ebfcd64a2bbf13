"""Spot in the control loop: who is offered it, what is learned of it, and what is billed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eva.control.commands import ComputePlan, LaunchInstance, StartTask
from eva.control.controller import Controller
from eva.control.events import (
    CatalogChanged,
    InstanceLost,
    InstanceTerminated,
    InstanceUnreachable,
    JobCancelled,
    JobSubmitted,
    LaunchRefused,
    PlanComputed,
    RoundDue,
    SpotNotice,
    TaskCheckpointed,
    TaskStarted,
)
from eva.control.interruptions import MEMORY_MS
from eva.control.invariants import check_everything
from eva.control.journal import Codec, digest, fold
from eva.control.settings import ControllerSettings
from eva.control.state import MS_PER_DAY, Experience, State
from eva.master.flattened import flatten, unflatten
from eva.model.catalog import Catalog, InstanceType
from eva.model.errors import InvariantError
from eva.model.ids import InstanceId, JobId, TaskId, Workload
from eva.model.jobs import JobSpec, TaskSpec
from eva.model.units import MS_PER_HOUR, cost_micros
from eva.scheduling.eva import EvaPolicy
from eva.scheduling.spot import Rate, SpotRisk
from tests.unit.control.bench import BIG, ONE_GPU, SMALL, STATED, Bench, of

I1 = InstanceId("i-1")
CHEAP = replace(SMALL, spot_hourly_micros=1_000_000)
CATALOG = Catalog("with spot", (BIG, CHEAP))
RISK = SpotRisk(Rate(1, 20 * MS_PER_HOUR), MS_PER_HOUR)  # an interruption costs an hour
SETTINGS = ControllerSettings(spot_risk=RISK)
WILLING = TaskSpec(Workload("w"), replace(ONE_GPU, spot=True), STATED)


class SpotBench(Bench):
    def __init__(self) -> None:
        super().__init__()
        self.controller = Controller(CATALOG, SETTINGS)
        self.state = self.controller.state

    def willing(self, name: str) -> None:
        self.send(JobSubmitted(JobId(name), JobSpec(name, (WILLING,))))

    def plan(self) -> list[LaunchInstance]:
        """What Eva makes of the last snapshot."""
        assert self.snapshot is not None
        assert self.state.planning is not None
        plan = EvaPolicy().plan(self.snapshot)
        return of(LaunchInstance, self.send(PlanComputed(self.state.planning, plan)))

    def planned(self) -> list[str]:
        self.send(RoundDue())
        return [launch.type.name for launch in self.plan()]

    def up(self, *names: str) -> None:
        for name in names:
            self.willing(name)
        assert set(self.planned()) == {"small:spot"}
        for instance in tuple(self.state.instances):
            self.start_on(instance)

    def start_on(self, instance: str) -> None:
        for start in of(StartTask, self.ready(instance)):
            self.send(TaskStarted(start.task, start.epoch))

    @property
    def offered(self) -> dict[str, InstanceType]:
        assert self.snapshot is not None
        return {kind.name: kind for kind in self.snapshot.catalog}

    def risk_seen(self) -> int:
        self.send(RoundDue())
        risk = self.offered["small:spot"].risk_micros
        if self.state.planning is not None:
            self.plan()
        return risk


def test_spot_is_offered_while_a_job_allows_it() -> None:
    bench = SpotBench()
    bench.submit("a")
    bench.send(RoundDue())
    assert bench.snapshot is not None
    assert bench.snapshot.catalog is CATALOG
    bench.adopt()
    bench.willing("b")
    assert sorted(bench.planned()) == ["small", "small:spot"]
    assert {i.type.name for i in bench.state.instances.values()} == {"small", "small:spot"}
    bench.send(JobCancelled(JobId("b")), RoundDue())
    assert bench.snapshot.catalog is CATALOG


def test_the_price_is_decided_by_and_the_bill_leaves_out_the_risk() -> None:
    bench = SpotBench()
    bench.up("a")
    instance = bench.state.instances[I1]
    # A twentieth of what an hour on demand costs.
    assert instance.type.risk_micros == 3_000_000 // 20
    assert instance.type.hourly_micros == 1_150_000
    (account,) = bench.state.ledger
    assert (account.type, account.hourly_micros) == ("small:spot", 1_000_000)
    since_ms = account.acquired_ms
    assert since_ms is not None
    assert bench.state.ledger.bill_micros(since_ms + 90_000) == cost_micros(1_000_000, 90_000)


def test_a_refusal_on_spot_sets_aside_spot_alone() -> None:
    bench = SpotBench()
    bench.willing("a")
    assert bench.planned() == ["small:spot"]
    refused = bench.send(LaunchRefused(I1, "MaxSpotInstanceCountExceeded"))
    assert of(ComputePlan, refused)
    assert sorted(bench.offered) == ["big", "small"]
    assert [launch.type.name for launch in bench.plan()] == ["small"]
    bench.now_ms += SETTINGS.set_aside_ms
    bench.send(RoundDue())
    assert "small:spot" in bench.offered


def test_a_price_on_spot_that_is_not_known_any_more_leaves_the_rest() -> None:
    bench = SpotBench()
    bench.up("a")
    bench.willing("b")
    bench.send(CatalogChanged((BIG, SMALL)))
    assert bench.planned() == ["small"]
    assert bench.task("a.0").home is bench.state.instances[I1]


def test_a_plan_that_was_made_for_jobs_that_are_over_launches_nothing_on_spot() -> None:
    bench = SpotBench()
    bench.willing("a")
    bench.send(RoundDue(), JobCancelled(JobId("a")))
    assert bench.plan() == []


# What is learned


def test_a_notice_raises_the_risk_at_once() -> None:
    bench = SpotBench()
    bench.up("a")
    first = bench.risk_seen()
    bench.send(SpotNotice(I1, 999_000), SpotNotice(I1, 999_000))
    assert bench.state.spot["p3:spot"].interruptions == 1
    bench.send(TaskCheckpointed(TaskId("a.0"), 1), InstanceTerminated(I1))
    assert bench.state.spot["p3:spot"].running == 0
    assert bench.risk_seen() == pytest.approx(2 * first, rel=0.01)


def test_after_enough_of_them_the_task_goes_back_on_demand() -> None:
    bench = SpotBench()
    bench.up("a")
    for number in range(1, 14):
        (task,) = bench.state.tasks.values()
        home = task.home
        assert home is not None
        assert home.type.name == "small:spot", f"after {number} interruptions"
        bench.send(InstanceLost(home.id))
        (launched,) = bench.planned()
        if launched == "small":
            break
        bench.start_on(f"i-{bench.state.launches}")
    # 1 + 13 x 3/20 = 2.95 dollars with the risk of twelve, 3.10 with that of thirteen.
    assert number == 13


def test_a_running_task_leaves_spot_when_others_were_interrupted_often() -> None:
    """The risk of what runs goes with what is known, its bill does not."""
    bench = SpotBench()
    bench.up("a", "b")
    (first,) = bench.state.instances[I1].bound
    other = "b.0" if first == "a.0" else "a.0"
    for number in range(1, 14):
        home = bench.task(other).home
        assert home is not None
        bench.send(InstanceLost(home.id))
        bench.planned()
        bench.start_on(f"i-{bench.state.launches}")
        assert bench.snapshot is not None
        view = next(view for view in bench.snapshot.instances if view.id == I1)
        assert view.type.risk_micros == (1 + number) * 150_000
        assert view.type.billed_micros == 1_000_000
    moved = bench.task(first).home
    assert moved is not None
    assert moved.type.name == "small"


def test_quiet_hours_lower_it_and_catalogs_stay_shared_in_between() -> None:
    bench = SpotBench()
    bench.up("a")
    bench.send(RoundDue())
    bench.plan()
    before = bench.snapshot
    bench.now_ms += 19 * MS_PER_HOUR
    bench.send(RoundDue())
    bench.plan()
    assert before is not None
    assert bench.snapshot is not None
    assert bench.snapshot.catalog is before.catalog
    bench.now_ms += MS_PER_HOUR
    assert bench.risk_seen() == 3_000_000 // 40


def test_what_proves_nothing_is_not_counted() -> None:
    bench = SpotBench()
    bench.up("a", "b", "c")
    bench.willing("d")
    assert bench.planned() == ["small:spot"]
    bench.send(
        InstanceLost(InstanceId("i-4")),  # never ready: refused, late
        InstanceUnreachable(I1),  # silent, and then gone as asked
        InstanceLost(I1),
        JobCancelled(JobId("b")),
    )
    assert bench.state.spot["p3:spot"].interruptions == 0
    assert bench.state.spot["p3:spot"].running == 2
    bench.send(InstanceLost(InstanceId("i-3")))
    assert bench.state.spot["p3:spot"].interruptions == 1


def test_nothing_is_learned_from_what_is_on_demand() -> None:
    bench = SpotBench()
    bench.submit("a")
    bench.running((SMALL, ("a.0",)))
    bench.send(SpotNotice(I1, 999_000), InstanceLost(I1))
    assert bench.state.spot == {}


def test_the_profile_of_a_machine_is_the_same_on_spot() -> None:
    bench = SpotBench()
    bench.state.standalone[Workload("w"), "p3"] = 7.0
    bench.send(JobSubmitted(JobId("a"), JobSpec("a", (TaskSpec(Workload("w"), WILLING.demand),))))
    assert bench.planned() == ["small:spot"]
    bench.ready("i-1")
    assert bench.controller.profiler.standalone(bench.task("a.0")) == 7.0


def test_a_bad_day_does_not_keep_everybody_away_for_good() -> None:
    seen = Experience(interruptions=13, up_ms=MS_PER_HOUR, since_ms=7)
    later = [seen.at(7 + days * MS_PER_DAY).interruptions for days in range(6)]
    assert later == [13, 6, 3, 1, 0, 0]
    assert seen.at(6 + MS_PER_DAY) == seen
    assert seen.at(8 + MS_PER_DAY).at(7 + 2 * MS_PER_DAY) == seen.at(7 + 2 * MS_PER_DAY)
    assert seen.at(10**15).up_ms == 0


def test_nothing_is_forgotten_by_the_day_while_some_are_up() -> None:
    seen = Experience(interruptions=3, up_ms=0, running=2, since_ms=0)
    assert seen.at(MS_PER_DAY) == Experience(3, 2 * MS_PER_DAY, 2, MS_PER_DAY)


def test_of_very_many_hours_the_later_ones_count_more() -> None:
    bench = SpotBench()
    bench.up("a", "b")
    bench.send(InstanceLost(I1))
    bench.now_ms += 3 * MEMORY_MS // 2
    before = bench.state.spot["p3:spot"]
    bench.send(InstanceLost(InstanceId("i-2")))
    after = bench.state.spot["p3:spot"]
    assert after.interruptions == before.interruptions // 2 + 1
    assert after.up_ms == before.at(bench.now_ms).up_ms // 2


# What survives


def _story() -> SpotBench:
    bench = SpotBench()
    bench.up("a", "b")
    bench.now_ms += 5 * MS_PER_HOUR
    bench.send(SpotNotice(I1, bench.now_ms + 120_000), RoundDue())
    return bench


def test_it_is_folded_from_the_journal() -> None:
    bench = _story()
    codec = Codec(CATALOG)
    read = [codec.decode(codec.encode(now_ms, event)) for now_ms, event in bench.journal]
    assert read == bench.journal
    folded = fold(read, Controller(CATALOG, SETTINGS))
    assert digest(folded.state) == digest(bench.state)
    assert folded.state.spot == bench.state.spot
    assert list(folded.state.on_spot) == ["a", "b"]


def test_it_is_in_snapshots() -> None:
    bench = _story()
    into = State(bench.state.table)
    unflatten(flatten(bench.state), into)
    check_everything(into)
    assert digest(into) == digest(bench.state)
    assert into.spot == bench.state.spot
    assert into.on_spot[JobId("a")] is into.jobs[JobId("a")]


def test_a_digest_tells_what_was_learned() -> None:
    bench = _story()
    before = digest(bench.state)
    bench.state.spot["p3:spot"] = replace(bench.state.spot["p3:spot"], interruptions=7)
    assert digest(bench.state) != before


def test_being_on_spot_unasked_is_a_broken_promise() -> None:
    bench = SpotBench()
    bench.up("a")
    task = bench.task("a.0")
    task.spec = replace(task.spec, demand=replace(task.spec.demand, spot=False))
    with pytest.raises(InvariantError, match=r"may be taken back|no demand on family"):
        check_everything(bench.state)


def test_demands_of_before_there_was_spot_are_read() -> None:
    codec = Codec(CATALOG)
    record = codec.encode(1, JobSubmitted(JobId("a"), JobSpec("a", (WILLING,))))
    del record["spec"]["tasks"][0]["demand"]["spot"]
    _, event = codec.decode(record)
    assert isinstance(event, JobSubmitted)
    assert not event.spec.spot
