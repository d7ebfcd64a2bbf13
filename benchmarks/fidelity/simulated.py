"""The simulated side: the jobs as the live cluster accepted them, in a world with its delays.

The policy plans with the catalog that the live master planned with; what the machine added on top
of that catalog's delays surprises it here as it did there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from benchmarks.fidelity.live import LiveRun
from benchmarks.fidelity.measured import Added, Story
from benchmarks.fidelity.scenario import PACE, Scenario
from eva.model.catalog import Catalog, InstanceDelays
from eva.model.ids import InstanceId, TaskId
from eva.model.oracle import Knowledge
from eva.model.plan import ClusterPlan, PlannedInstance
from eva.model.snapshot import ClusterSnapshot, InstanceView
from eva.scheduling.policies import policy
from eva.scheduling.policy import SchedulingPolicy
from eva.simulator.driver import simulate
from eva.simulator.result import SimulationResult
from eva.simulator.settings import SimulationSettings
from eva.traces.trace import TaskPhases, Trace, TraceJob


def run_simulated(scenario: Scenario, run: LiveRun, story: Story, added: Added) -> SimulationResult:
    """The live run once more, in live time, without the machine."""
    planned_with = scenario.catalog
    return simulate(
        _as_accepted(scenario, run, story, added),
        Believing(policy(run.policy), planned_with),
        _with_added(planned_with, added),
        SimulationSettings(round_ms=scenario.round_ms),
    )


def _as_accepted(scenario: Scenario, run: LiveRun, story: Story, added: Added) -> Trace:
    """Specs and arrivals from the journal, work from the trace.

    Starting and ending a process are counted as initialising: in that time nothing is fetched
    ahead, and the job stands still.
    """
    jobs = []
    accepted = zip(story.submitted.items(), scenario.trace.jobs, strict=True)
    for (name, (at_ms, spec)), drawn in accepted:
        phases = drawn.phases[0]
        lived = TaskPhases(
            init_ms=scenario.live_ms(phases.init_ms) + added.start_ms + added.exit_ms,
            kill_ms=added.stop_ms,
            upload_ms=scenario.live_ms(phases.upload_ms),
        )
        jobs.append(
            TraceJob(
                name,
                max(0, at_ms - run.began_ms),
                scenario.live_ms(drawn.duration_ms),
                spec,
                scenario.steps(drawn),
                PACE,
                (lived,) * len(drawn.phases),
            )
        )
    return Trace(scenario.name, tuple(jobs))


def _with_added(catalog: Catalog, added: Added) -> Catalog:
    def real(delays: InstanceDelays) -> InstanceDelays:
        return InstanceDelays(
            delays.acquire_ms + added.acquire_ms,
            delays.start_worker_ms + added.setup_ms,
            delays.register_worker_ms,
            delays.terminate_ms + added.terminate_ms,
        )

    return catalog.with_types(replace(kind, delays=real(kind.delays)) for kind in catalog)


@dataclass(slots=True)
class Believing:
    """A policy that plans with its own catalog, whatever delays the world's has.

    Views are translated once each: policies remember by identity.
    """

    inner: SchedulingPolicy
    catalog: Catalog
    _given: tuple[InstanceView, ...] = ()
    _shown: tuple[InstanceView, ...] = ()
    _views: dict[tuple[InstanceId, tuple[TaskId, ...]], InstanceView] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def knowledge(self) -> frozenset[Knowledge]:
        return self.inner.knowledge

    def plan(self, snapshot: ClusterSnapshot) -> ClusterPlan:
        if snapshot.instances is not self._given:
            self._given = snapshot.instances
            self._shown = tuple(map(self._view, snapshot.instances))
        believed = replace(snapshot, catalog=self.catalog, instances=self._shown)
        plan = self.inner.plan(believed)

        def real(planned: PlannedInstance) -> PlannedInstance:
            kind = snapshot.catalog.get(planned.type.name)
            return planned if kind is None else replace(planned, type=kind)

        return replace(plan, instances=tuple(map(real, plan.instances)))

    def _view(self, view: InstanceView) -> InstanceView:
        key = view.id, view.tasks
        if key not in self._views:
            kind = self.catalog.get(view.type.name)
            self._views[key] = view if kind is None else replace(view, type=kind)
        return self._views[key]
