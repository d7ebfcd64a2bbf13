"""The rules of the simulation, each on a trace small enough to be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eva.control.events import Event, ThroughputReported
from eva.model.catalog import Catalog, InstanceDelays, InstanceType
from eva.model.errors import InputError
from eva.model.ids import InstanceId, JobId, TaskId, Workload
from eva.model.jobs import JobSpec, StandaloneThroughput, TaskSpec
from eva.model.oracle import Knowledge
from eva.model.plan import ClusterPlan, PlannedInstance, Unplaceable
from eva.model.resources import Demand, Resources
from eva.model.snapshot import ClusterSnapshot
from eva.scheduling.baselines.no_packing import NoPacking
from eva.scheduling.policy import SchedulingPolicy
from eva.simulator.driver import simulate
from eva.simulator.result import SimulationResult
from eva.simulator.settings import DelaySettings, FaultSettings, SimulationSettings
from eva.traces.interference import Interference
from eva.traces.trace import TaskPhases, Trace, TraceJob

S = 1_000
DELAYS = InstanceDelays(20 * S, 30 * S, 50 * S, 1 * S)
# 3.6 $/h is 1,000 micro-dollars a second.
ONE = InstanceType("one", "any", Resources(1, 8_000, 8_192), 3_600_000, DELAYS)
TWO = InstanceType("two", "any", Resources(2, 16_000, 16_384), 7_200_000, DELAYS)
CATALOG = Catalog("two types", (ONE, TWO))
PHASES = TaskPhases(
    fetch_ms=5 * S, build_ms=15 * S, init_ms=60 * S, kill_ms=2 * S, upload_ms=8 * S, image="i"
)
TRUTH = Interference("by hand", {"a": {"b": 0.5}, "b": {"a": 0.8}}, 1.0)
EXACT = SimulationSettings(interference=TRUTH, checks="full")


def job(name: str, arrival_s: int = 10, work_s: int = 1_000, tasks: int = 1) -> TraceJob:
    spec = TaskSpec(Workload(name), Demand.of(1, 2, 2), StandaloneThroughput(2.0), PHASES.delays)
    return TraceJob(
        JobId(name),
        arrival_s * S,
        work_s * S,
        JobSpec(name, (spec,) * tasks),
        work_s * 2.0,
        2.0,
        (PHASES,) * tasks,
    )


class Script:
    """A policy that follows a script: by round time, on which instances the tasks are."""

    name = "script"
    knowledge: frozenset[Knowledge] = frozenset()

    def __init__(self, *acts: tuple[int, tuple[tuple[InstanceType | str, tuple[str, ...]], ...]]):
        self._acts = acts

    def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
        _, act = [act for act in self._acts if act[0] * S <= snapshot.now_ms][-1]
        live = {task.id for task in snapshot.tasks}
        present = {view.id: view for view in snapshot.instances}
        planned = []
        for where, names in act:
            tasks = tuple(TaskId(name) for name in names if name in live)
            if isinstance(where, InstanceType):
                planned.append(PlannedInstance(where, tasks))
            elif where in present and tasks:
                view = present[InstanceId(where)]
                planned.append(PlannedInstance(view.type, tasks, view.id))
        return ClusterPlan(tuple(planned))


def play(
    policy: SchedulingPolicy, *jobs: TraceJob, settings: SimulationSettings = EXACT
) -> SimulationResult:
    return simulate(Trace("by hand", jobs), policy, CATALOG, settings)


def test_one_job_alone_by_hand() -> None:
    result = play(NoPacking(), job("a"))
    (row,) = result.jobs
    # Round at 300, acquired at 320, registered at 400, runs at 420, initialised at 480.
    assert row.ended_ms == (480 + 1_000) * S
    assert row.jct_ms == 1_470 * S
    assert row.idle_ms == row.jct_ms - (60 + 1_000) * S
    (instance,) = result.instances
    # Empty from 1480, dropped at the round at 1500, gone at 1501.
    assert (instance.acquired_ms, instance.ready_ms) == (320 * S, 400 * S)
    assert instance.ended_ms == 1_501 * S
    assert result.total_cost_micros == (1_501 - 320) * 1_000
    spent = {name: micros / 1_000 for name, micros in result.spent_micros.items()}
    assert spent["setup"] == pytest.approx(80)
    assert spent["overhead"] == pytest.approx(80)  # fetch, build, init
    assert spent["work"] == pytest.approx(1_000)
    assert spent["draining"] == pytest.approx(21)
    assert sum(spent.values()) == pytest.approx(1_181)


def test_arrival_at_a_round_belongs_to_it() -> None:
    assert play(NoPacking(), job("a", arrival_s=300)).jobs[0].ended_ms == 1_480 * S


def test_neighbours_slow_each_other_only_while_both_run() -> None:
    together = Script((0, ((TWO, ("a.0", "b.0")),)), (301, (("i-1", ("a.0", "b.0")),)))
    result = play(together, job("a"), job("b"))
    ended = {row.job: row.ended_ms for row in result.jobs}
    # The image is built once: both fetch from 400; both build, as both start before it is built.
    # From 480, a runs at 0.5 and b at 0.8. b ends at 480 + 1250; a has 375 left, and is alone.
    assert ended["b"] == 1_730 * S
    assert ended["a"] == (1_730 + 375) * S
    assert 0 < result.normalized_throughput < 1


def test_a_job_is_as_fast_as_its_slowest_task() -> None:
    apart = Script(
        (0, ((TWO, ("a.0", "b.0")), (ONE, ("a.1",)))),
        (301, (("i-1", ("a.0", "b.0")), ("i-2", ("a.1",)))),
    )
    result = play(apart, job("a", tasks=2), job("b", work_s=100_000))
    assert result.jobs[0].ended_ms == (480 + 2_000) * S  # at 0.5, although a.1 is alone


@pytest.mark.parametrize(
    ("migrate", "stopped_s", "started_s"),
    [("stop-first", 900, 1_000), ("prepare-first", 1_000, 1_010)],
)
def test_moving_keeps_progress(migrate: str, stopped_s: int, started_s: int) -> None:
    move = Script(
        (0, ((ONE, ("a.0",)),)),
        (301, (("i-1", ("a.0",)),)),
        (900, ((TWO, ("a.0",)),)),
        (901, (("i-2", ("a.0",)),)),
    )
    settings = replace(EXACT, migrate=migrate)  # type: ignore[arg-type]  # a literal
    result = play(move, job("a", work_s=2_000), settings=settings)
    (row,) = result.jobs
    # Runs from 480. The second instance is registered at 1000. Stopping takes 10. Fetching and
    # building take 20, and overlap with stopping where the task was prepared; then 60 of init.
    done_s = stopped_s - 480
    staged_s = 20 if migrate == "stop-first" else 10
    assert row.ended_ms == (started_s + staged_s + 60 + 2_000 - done_s) * S
    assert row.migrations == 1


def test_delays_can_be_scaled_and_drawn_from_a_range() -> None:
    slow = replace(EXACT, delays=DelaySettings(task_scale=2, instance_scale=3))
    # Registered at 300 + 300, runs at 640, initialised at 760.
    assert play(NoPacking(), job("a"), settings=slow).jobs[0].ended_ms == 1_760 * S

    def ended(seed: int) -> int:
        drawn = replace(EXACT, delays=DelaySettings(jitter=(0.5, 1.5), seed=seed))
        return play(NoPacking(), job("a"), settings=drawn).jobs[0].ended_ms

    assert ended(1) == ended(1) != ended(2)
    assert 1_390 * S < ended(1) < 1_570 * S


def test_observations_come_only_when_they_change() -> None:
    together = Script((0, ((TWO, ("a.0", "b.0")),)), (301, (("i-1", ("a.0", "b.0")),)))
    reports: list[tuple[int, ThroughputReported]] = []

    def sink(now_ms: int, event: Event) -> None:
        if isinstance(event, ThroughputReported):
            reports.append((now_ms // S, event))

    simulate(Trace("t", (job("a"), job("b"))), together, CATALOG, EXACT, sink)
    seen = [(at, [(s.task, s.iterations_per_s) for s in r.samples]) for at, r in reports]
    assert seen == [
        (600, [("a.0", 1.0), ("b.0", 1.6)]),
        (1_800, [("a.0", 2.0)]),
    ]


def test_noise_is_seeded() -> None:
    def hashed(seed: int) -> str:
        noisy = replace(EXACT, noise=0.1, noise_seed=seed, journal_hash=True)
        return play(NoPacking(), job("a"), settings=noisy).journal_hash

    assert hashed(1) == hashed(1) != hashed(2)


def test_faults_are_seeded() -> None:
    def hashed(seed: int) -> str:
        faults = FaultSettings(seed=seed, instance_lost=0.5, launch_refused=0.5, message_late=0.5)
        return play(
            NoPacking(), job("a"), settings=replace(EXACT, faults=faults, journal_hash=True)
        ).journal_hash

    assert hashed(1) == hashed(1)
    assert len({hashed(seed) for seed in range(5)}) > 1


def test_what_is_never_placed_is_reported_with_the_reason() -> None:
    class Refuses:
        name = "refuses"
        knowledge: frozenset[Knowledge] = frozenset()

        def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
            return ClusterPlan((), tuple(Unplaceable(t.id, "too large") for t in snapshot.tasks))

    with pytest.raises(InputError, match=r"job a: is never placed by refuses: too large"):
        play(Refuses(), job("a"))


def test_oracles_reach_only_those_who_declare_them() -> None:
    asked: list[int] = []

    class Asks:
        name = "asks"
        knowledge = frozenset({Knowledge.REMAINING_TIME})

        def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
            asked.extend(snapshot.oracle.remaining_ms(task.job) for task in snapshot.tasks)
            assert snapshot.oracle.profile is None
            return NoPacking().plan(snapshot)

    play(Asks(), job("a"))
    assert asked == [1_000 * S, 880 * S, 580 * S, 280 * S]
