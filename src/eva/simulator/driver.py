"""`simulate`: a trace, a policy and a catalog in; what it costs and how it went out.

The driver turns the crank of the controller: arrivals and rounds from the trace and the clock,
everything else from the world. Commands are carried out in the world; `ComputePlan` is answered
inline, or later where the faults want a slow planner.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from eva.control import commands as cmd
from eva.control.controller import Controller
from eva.control.events import (
    Event,
    JobCancelled,
    JobSubmitted,
    PlanComputed,
    PlanFailed,
    RoundDue,
)
from eva.control.invariants import check_everything, check_touched
from eva.control.journal import Codec
from eva.control.settings import ControllerSettings
from eva.model.catalog import Catalog
from eva.model.errors import InputError, InvariantError, Problem
from eva.model.ids import JobId, task_id
from eva.model.oracle import Oracle
from eva.model.units import MS_PER_SECOND
from eva.scheduling.policy import SchedulingPolicy
from eva.simulator.cloud import Cloud
from eva.simulator.delays import Delays
from eva.simulator.faults import Faults
from eva.simulator.messenger import Messenger
from eva.simulator.observation import Observation
from eva.simulator.phases import TaskMachinery
from eva.simulator.progress import Progress
from eva.simulator.result import SimulationResult
from eva.simulator.rows import instance_row, job_row
from eva.simulator.settings import SimulationSettings
from eva.simulator.timeline import Timeline
from eva.simulator.world import World, WorldJob
from eva.traces.trace import Trace, TraceJob

EventSink = Callable[[int, Event], None]
FULL_CHECK_EVERY = 2_000
IMPATIENCE_MS = 60 * MS_PER_SECOND


def simulate(
    trace: Trace,
    policy: SchedulingPolicy,
    catalog: Catalog,
    settings: SimulationSettings | None = None,
    sink: EventSink | None = None,
) -> SimulationResult:
    """Run the trace to its end. `sink` is given every event with its time, before it is handled."""
    return Simulation(trace, policy, catalog, settings or SimulationSettings(), sink).run()


class Simulation:
    """One run. `controller` may be looked at; only events change it."""

    def __init__(
        self,
        trace: Trace,
        policy: SchedulingPolicy,
        catalog: Catalog,
        settings: SimulationSettings,
        sink: EventSink | None = None,
    ) -> None:
        self.settings = settings
        self.world = World()
        self.timeline = Timeline()
        self.controller = Controller(
            catalog,
            ControllerSettings(
                migrate=settings.migrate, default_throughput=settings.default_throughput
            ),
            self._oracle,
        )
        self._trace = trace
        self._policy = policy
        self._catalog = catalog
        self._sink = sink
        self._hash = hashlib.sha256() if settings.journal_hash else None
        self._codec = Codec(catalog)
        self._faults = Faults(settings.faults)
        delays = Delays(settings.delays)
        messenger = Messenger(self.timeline, self._faults, self.submit)
        self._observation = Observation(self.world, settings.noise, settings.noise_seed)
        self._progress = Progress(
            self.timeline,
            settings.interference,
            self._observation,
            self._complete,
            delays.task,
        )
        parts = (self.timeline, self.world, self._progress, messenger, delays, self._faults)
        self._machinery = TaskMachinery(*parts)
        self._cloud = Cloud(*parts)
        self._carry_out: dict[type, Callable[[Any], None]] = {
            cmd.ComputePlan: self._plan,
            cmd.LaunchInstance: self._cloud.launch,
            cmd.TerminateInstance: self._cloud.terminate,
            cmd.PrepareTask: self._machinery.prepare,
            cmd.StartTask: self._machinery.start,
            cmd.CheckpointTask: self._checkpoint,
            cmd.StopTask: self._stop,
        }
        self._arrivals: Iterator[TraceJob] = iter(trace.jobs)
        self._round_scheduled = False
        self._jobs: list[WorldJob] = []
        self._harvested = 0
        self._plans = 0
        self._handled = 0
        self._commands = 0
        self._quiet_rounds = 0

    def run(self) -> SimulationResult:
        self._await_arrival()
        while self.timeline.step():
            pass
        self._harvest()
        if self.settings.checks != "off":
            self._check_end()
        return self._result()

    def submit(self, event: Event) -> None:
        """The one way to the controller's state."""
        now_ms = self.timeline.now_ms
        if self._sink is not None:
            self._sink(now_ms, event)
        if self._hash is not None:
            self._hash.update(self._codec.line(now_ms, event))
        commands = self.controller.handle(event, now_ms)
        self._handled += 1
        if self.settings.checks != "off":
            self._check(event, commands)
        self._commands += len(commands)
        for command in commands:
            self._carry_out[type(command)](command)

    def _complete(self, job: WorldJob) -> None:
        self._machinery.complete(job)

    # Arrivals and rounds

    def _await_arrival(self) -> None:
        job = next(self._arrivals, None)
        if job is not None:
            self.timeline.at(job.arrival_ms, lambda: self._arrive(job))

    def _arrive(self, trace_job: TraceJob) -> None:
        work_ms = trace_job.total_iterations / trace_job.throughput_per_s * MS_PER_SECOND
        job = WorldJob(trace_job, work_ms, work_ms)
        self.world.jobs[job.id] = job
        for index in range(len(trace_job.phases)):
            self.world.owners[task_id(job.id, index)] = (job, index)
        self._jobs.append(job)
        self.submit(JobSubmitted(job.id, trace_job.spec))
        self._may_be_cancelled(job, self._faults.settings.within_ms)
        self._ensure_round()
        self._await_arrival()

    def _may_be_cancelled(self, job: WorldJob, within_ms: int) -> None:
        if self._faults.strikes(self._faults.settings.job_cancelled):
            cancelled = JobCancelled(job.id)
            delay_ms = self._faults.soon_ms(within_ms)
            self.timeline.after(delay_ms, lambda: self.submit(cancelled))

    def _checkpoint(self, command: cmd.CheckpointTask) -> None:
        self._machinery.checkpoint(command)
        self._lose_patience(command)

    def _stop(self, command: cmd.StopTask) -> None:
        self._machinery.stop(command)
        self._lose_patience(command)

    def _lose_patience(self, command: cmd.CheckpointTask | cmd.StopTask) -> None:
        """Users cancel at awkward moments, such as when their job has just been stopped."""
        job, _ = self.world.owners[command.task]
        self._may_be_cancelled(job, IMPATIENCE_MS)

    def _ensure_round(self) -> None:
        """Rounds fall on multiples of the period, and only while there is anything to schedule."""
        if not self._round_scheduled:
            self._round_scheduled = True
            period_ms = self.settings.round_ms
            due_ms = -(-self.timeline.now_ms // period_ms) * period_ms
            self.timeline.round_at(due_ms, self._round)

    def _round(self) -> None:
        report = self._observation.report()
        if report is not None:
            self.submit(report)
        self._may_reprice()
        self._commands = 0
        self.submit(RoundDue())
        self._harvest()
        state = self.controller.state
        self._round_scheduled = bool(state.jobs or state.instances)
        if self._round_scheduled:
            self.timeline.round_at(self.timeline.now_ms + self.settings.round_ms, self._round)
            self._watch_for_stall()

    def _may_reprice(self) -> None:
        if self._faults.strikes(self._faults.settings.catalog_changed):
            self.submit(self._faults.repriced(self._catalog))

    def _plan(self, command: cmd.ComputePlan) -> None:
        self._plans += 1
        faults, settings = self._faults, self._faults.settings
        if faults.strikes(settings.plan_failed):
            self.submit(PlanFailed(command.round, "the planner was killed"))
            return
        plan = self._policy.plan(command.snapshot.granting(self._policy.knowledge))
        event = PlanComputed(command.round, plan)
        if faults.strikes(settings.plan_late):
            self.timeline.after(faults.lateness_ms(), lambda: self.submit(event))
        else:
            self.submit(event)

    def _watch_for_stall(self) -> None:
        """Jobs that wait for ever with nothing else going on are reported, not waited for."""
        state = self.controller.state
        idle = not state.instances and self._commands <= 1
        self._quiet_rounds = self._quiet_rounds + 1 if idle else 0
        if self._quiet_rounds > self.settings.quiet_rounds_limit:
            raise InputError(
                [
                    Problem(
                        f"job {task.job.id}",
                        f"is never placed by {self._policy.name}: "
                        f"{task.reason or 'no reason given'}; remove it or change the catalog",
                    )
                    for task in state.tasks.values()
                ]
            )

    # Oracle

    def _oracle(self, _now_ms: int) -> Oracle:
        return Oracle(_Remaining(self.world, self._progress), self.settings.interference.pair)

    # Checks and results

    def _check(self, event: Event, commands: list[cmd.Command]) -> None:
        state = self.controller.state
        check_touched(state, event, commands)
        if self.settings.checks == "full" or self._handled % FULL_CHECK_EVERY == 0:
            check_everything(state)

    def _check_end(self) -> None:
        """Nothing is left over, and the world's bill is the controller's."""
        state, world = self.controller.state, self.world
        check_everything(state)
        if state.jobs or state.instances or world.copies or world.instances:
            raise InvariantError(
                f"the simulation ended with jobs {list(state.jobs)}, instances "
                f"{list(state.instances)}, copies {list(world.copies)} and paid-for instances "
                f"{list(world.instances)} left over"
            )
        if len(state.records) != len(self._trace.jobs):
            raise InvariantError(
                f"{len(self._trace.jobs)} jobs were submitted, {len(state.records)} have ended"
            )
        billed = state.ledger.bill_micros(self.timeline.now_ms)
        used = sum(
            instance_row(instance).cost_micros
            for instance in world.ended
            if instance.acquired_ms is not None
        )
        if billed != used:
            raise InvariantError(f"the bill says {billed} micro-dollars, the cloud {used}")

    def _harvest(self) -> None:
        """Let go of the truth about jobs that the controller has closed."""
        records = self.controller.state.records
        fresh = len(records) - self._harvested
        for record in islice(reversed(records.values()), fresh):
            job = self.world.jobs[record.job]
            if job.copies:
                continue
            self._forget(job)
        self._harvested = len(records)

    def _forget(self, job: WorldJob) -> None:
        tasks = [task_id(job.id, index) for index in range(len(job.trace.phases))]
        del self.world.jobs[job.id]
        for task in tasks:
            del self.world.owners[task]
        self._observation.forget(job, tasks)

    def _result(self) -> SimulationResult:
        state = self.controller.state
        paid = [i for i in self.world.ended if i.acquired_ms is not None]
        return SimulationResult(
            policy=self._policy.name,
            trace=self._trace.name,
            ended_ms=self.timeline.now_ms,
            rounds=state.round,
            plans=self._plans,
            full_reconfigurations=state.full_reconfigurations,
            instances_launched=state.launches,
            migrations=state.migrations,
            total_cost_micros=state.ledger.bill_micros(self.timeline.now_ms),
            jobs=tuple(job_row(job, state.records[job.id]) for job in self._jobs),
            instances=tuple(instance_row(instance) for instance in paid),
            journal_hash="" if self._hash is None else self._hash.hexdigest(),
        )


class _Remaining(Mapping[JobId, int]):
    """What is left of each live job, in milliseconds at full throughput, computed when asked."""

    def __init__(self, world: World, progress: Progress) -> None:
        self._world = world
        self._progress = progress

    def __getitem__(self, job: JobId) -> int:
        return round(self._progress.remaining_ms(self._world.jobs[job]))

    def __iter__(self) -> Iterator[JobId]:
        return iter(self._world.jobs)

    def __len__(self) -> int:
        return len(self._world.jobs)
