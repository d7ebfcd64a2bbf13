"""From a seed to a small cluster with everything that can go wrong in it.

Small on purpose: a few jobs, a few hours, a few instance types. What breaks a scheduler is the
order of events, and orders are found by many seeds rather than by large clusters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from eva.control.controller import Controller
from eva.control.events import Event, JobCancelled, TaskExited, TaskStartFailed
from eva.control.journal import Codec, digest, fold
from eva.control.lifecycle import JobState
from eva.control.settings import ControllerSettings
from eva.model.catalog import Catalog, InstanceDelays, InstanceType
from eva.model.errors import InvariantError
from eva.model.ids import JobId, TaskId, Workload
from eva.model.jobs import JobSpec, StandaloneThroughput, TaskSpec
from eva.model.resources import Demand, Resources
from eva.scheduling.baselines.no_packing import NoPacking
from eva.scheduling.eva import EvaPolicy
from eva.scheduling.policy import SchedulingPolicy
from eva.simulator.driver import Simulation
from eva.simulator.result import SimulationResult
from eva.simulator.settings import DelaySettings, FaultSettings, SimulationSettings
from eva.traces.interference import MEASURED
from eva.traces.trace import TaskPhases, Trace, TraceJob
from tests.simulation.chaos import Chaos

HOUR_MS, MINUTE_MS, SECOND_MS = 3_600_000, 60_000, 1_000
LONGEST_MS = 400 * HOUR_MS  # nothing in here takes this long unless it is stuck
MIDWAY = 60  # events
FORGIVING = 1_000  # retries of jobs that must finish

_DELAYS = InstanceDelays(20_000, 60_000, 90_000, 1_000)
CATALOG = Catalog(
    "small",
    (
        InstanceType("big", "p3", Resources(4, 32_000, 200_000), 12_000_000, _DELAYS),
        InstanceType("one", "p3", Resources(1, 8_000, 50_000), 3_000_000, _DELAYS),
        InstanceType("cpu", "c7i", Resources(0, 16_000, 32_000), 700_000, _DELAYS),
        InstanceType("mini", "c7i", Resources(0, 4_000, 8_000), 180_000, _DELAYS),
    ),
)


# The same, of which some may be had on spot too.
SPOT_CATALOG = CATALOG.with_types(
    replace(kind, spot_hourly_micros=None if kind.name == "one" else kind.hourly_micros // 3)
    for kind in CATALOG
)


@dataclass(frozen=True, slots=True)
class Scenario:
    seed: int
    trace: Trace
    policy: SchedulingPolicy
    settings: SimulationSettings
    catalog: Catalog


def scenario(seed: int) -> Scenario:
    random = Random(f"scenario {seed}")
    jobs = [_job(random, index) for index in range(random.randint(1, 7))]
    jobs.sort(key=lambda job: job.arrival_ms)
    policy, settings, catalog = _policy(random), _settings(random, seed), CATALOG
    chance = Random(f"spot {seed}")  # of its own, so that the other scenarios stay what they were
    if chance.random() < 0.4:
        jobs = [_allowing_spot(job) if chance.random() < 0.6 else job for job in jobs]
        faults = replace(settings.faults, interruptions_per_hour=chance.choice((0.0, 0.5, 5.0)))
        settings, catalog = replace(settings, faults=faults), SPOT_CATALOG
    return Scenario(seed, Trace(f"seed {seed}", tuple(jobs)), policy, settings, catalog)


def _allowing_spot(job: TraceJob) -> TraceJob:
    tasks = tuple(replace(task, demand=replace(task.demand, spot=True)) for task in job.spec.tasks)
    return replace(job, spec=replace(job.spec, tasks=tasks))


def _job(random: Random, index: int) -> TraceJob:
    count = random.choice((1, 1, 1, 2, 2, 3))
    gpus = random.choice((0, 0, 1, 1, 2))
    cpus = random.choice((1, 2, 4, 6))
    on_c7i = Resources(0, cpus * 1_000 // 2, 4_000)
    demand = Demand(Resources(gpus, cpus * 1_000, 4_000), () if gpus else (("c7i", on_c7i),))
    rate = random.choice((0.5, 2.0, 10.0))
    stated = StandaloneThroughput(rate if random.random() < 0.8 else None)
    workload = Workload(f"{random.choice(MEASURED.workloads)}[{random.randrange(3)}]")
    minutes = random.randint(1, 90)
    phases = TaskPhases(
        fetch_ms=random.randrange(10) * SECOND_MS,
        build_ms=10 * SECOND_MS,
        init_ms=random.randrange(200) * SECOND_MS,
        kill_ms=random.choice((0, 1, 5, 200)) * SECOND_MS,
        upload_ms=random.choice((0, 5, 40, 600)) * SECOND_MS,
        image=f"image-{random.randrange(3)}",
    )
    return TraceJob(
        id=JobId(f"j{index}"),
        arrival_ms=random.randrange(2 * HOUR_MS),
        duration_ms=minutes * MINUTE_MS,
        spec=JobSpec(
            f"job {index}",
            (TaskSpec(workload, demand, stated, phases.delays),) * count,
            retries=random.choice((0, 1, FORGIVING)),
            max_duration_ms=random.choice((None, None, None, 2 * HOUR_MS)),
        ),
        total_iterations=minutes * 60 * rate,
        throughput_per_s=rate,
        phases=(phases,) * count,
        reports_throughput=random.random() < 0.9,
    )


def _policy(random: Random) -> SchedulingPolicy:
    kind = random.choice(("chaos", "chaos", "chaos", "eva", "no-packing"))
    if kind == "chaos":
        return Chaos(random.randrange(1_000_000), restless=random.choice((0.05, 0.2, 0.5)))
    return EvaPolicy() if kind == "eva" else NoPacking()


def _settings(random: Random, seed: int) -> SimulationSettings:
    def maybe(probability: float) -> float:
        return probability if random.random() < 0.4 else 0.0

    faults = FaultSettings(
        seed=random.randrange(1_000_000),
        launch_refused=maybe(0.3),
        instance_lost=maybe(0.3),
        instance_unreachable=maybe(0.2),
        spot_notice=maybe(0.3),
        start_failed=maybe(0.2),
        checkpoint_failed=maybe(0.4),
        task_crashes=maybe(0.3),
        job_cancelled=maybe(0.15),
        message_late=maybe(0.3),
        message_twice=maybe(0.3),
        plan_late=maybe(0.5),
        plan_failed=maybe(0.1),
        catalog_changed=Random(f"prices {seed}").choice((0.0, 0.0, 0.1)),
        late_ms=random.choice((2 * SECOND_MS, 60 * SECOND_MS, 900 * SECOND_MS)),
        within_ms=random.choice((10 * MINUTE_MS, 2 * HOUR_MS)),
    )
    return SimulationSettings(
        round_ms=random.choice((45, 300, 300)) * SECOND_MS,
        migrate=random.choice(("prepare-first", "stop-first")),
        delays=DelaySettings(
            jitter=random.choice((None, (0.2, 3.0))), seed=random.randrange(1_000_000)
        ),
        faults=faults,
        noise=random.choice((0.0, 0.0, 0.05)),
        checks="full",
        journal_hash=True,
    )


class WatchedSimulation(Simulation):
    """A simulation that keeps its journal and does not run for ever."""

    def __init__(self, given: Scenario) -> None:
        self.journal: list[tuple[int, Event]] = []
        self.cancelled: set[JobId] = set()  # while they were live
        self.midway = ""  # the digest after MIDWAY events, in the thick of it
        super().__init__(given.trace, given.policy, given.catalog, given.settings, self._keep)

    def _keep(self, now_ms: int, event: Event) -> None:
        if now_ms > LONGEST_MS:
            live = [f"{job.id} {job.state.value}" for job in self.controller.state.jobs.values()]
            raise InvariantError(f"stuck: after {now_ms} ms these still live: {live}")
        if len(self.journal) == MIDWAY:
            self.midway = digest(self.controller.state)
        self.journal.append((now_ms, event))
        if isinstance(event, JobCancelled) and event.job in self.controller.state.jobs:
            self.cancelled.add(event.job)


def run(seed: int, *, fold_journal: bool = False) -> SimulationResult:
    """Run a scenario with every check there is; raises InvariantError for whatever is broken."""
    given = scenario(seed)
    simulation = WatchedSimulation(given)
    result = simulation.run()
    check_outcomes(given, simulation)
    if fold_journal:
        check_fold(given, simulation)
    return result


def check_outcomes(given: Scenario, simulation: WatchedSimulation) -> None:
    """Every job ended, in a way that what happened to it explains."""
    blame = Counter(task.rpartition(".")[0] for task in _failures(simulation.journal))
    for job in given.trace.jobs:
        record = simulation.controller.state.records[job.id]
        allowed = {JobState.CANCELLED if job.id in simulation.cancelled else JobState.FINISHED}
        if record.failures > job.spec.retries or job.spec.max_duration_ms is not None:
            allowed.add(JobState.FAILED)
        if record.state not in allowed:
            raise InvariantError(f"job {job.id} ended {record.state.value}: {record.reason}")
        if record.failures > blame[job.id]:
            raise InvariantError(
                f"job {job.id} is blamed for {record.failures} failures; it had {blame[job.id]}"
            )


def _failures(journal: list[tuple[int, Event]]) -> Iterator[TaskId]:
    """Tasks that failed by their own doing, once for each time that word of it came."""
    for _, event in journal:
        match event:
            case TaskExited(task=task, exit_code=code) if code != 0:
                yield task
            case TaskStartFailed(task=task, infrastructure=False):
                yield task
            case _:
                pass


def check_fold(given: Scenario, simulation: WatchedSimulation) -> None:
    """The journal, written and read back, folds into the very state that was left behind."""
    codec = Codec(given.catalog)
    read = [codec.decode(codec.encode(now_ms, event)) for now_ms, event in simulation.journal]
    if read != simulation.journal:
        raise InvariantError("the journal does not survive being written and read")
    settings = ControllerSettings(migrate=given.settings.migrate)
    if len(read) > MIDWAY:
        folded = fold(read[:MIDWAY], Controller(given.catalog, settings))
        if digest(folded.state) != simulation.midway:
            raise InvariantError(f"folding {MIDWAY} events gives another state")
    folded = fold(read, Controller(given.catalog, settings))
    if digest(folded.state) != digest(simulation.controller.state):
        raise InvariantError("folding the journal gives another state")
