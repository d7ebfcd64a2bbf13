"""Both sides of one policy beside each other, as rows and as a verdict."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from benchmarks.fidelity.live import LiveRun, run_live
from benchmarks.fidelity.measured import Added, Story, measure, read_story
from benchmarks.fidelity.scenario import Scenario
from benchmarks.fidelity.simulated import run_simulated
from benchmarks.tables import Table
from eva.simulator.result import SimulationResult

POLICIES = ("no-packing", "eva")


@dataclass(frozen=True, slots=True)
class Comparison:
    scenario: Scenario
    live: LiveRun
    story: Story
    added: Added
    simulated: SimulationResult
    unmeasured: SimulationResult  # as if processes started and ended in no time

    @property
    def difference(self) -> float:
        """Of the simulated bill from the live one, as a share of the live one."""
        return self.simulated.total_cost_micros / self.live.bill_micros - 1

    @property
    def unfinished(self) -> list[str]:
        return [job.name for job in self.live.jobs if job.state != "finished"]

    @property
    def ok(self) -> bool:
        return abs(self.difference) <= self.scenario.tolerance and not self.unfinished


def compare(scenario: Scenario, policy: str, home: Path | None = None) -> Comparison:
    """Run live, measure, simulate. Files stay in `home` if one is given."""
    if home is None:
        with tempfile.TemporaryDirectory(prefix="eva-fidelity-") as folder:
            return compare(scenario, policy, Path(folder))
    run = run_live(scenario, policy, home)
    story = read_story(run, scenario.catalog)
    added = measure(scenario, run, story)
    return Comparison(
        scenario,
        run,
        story,
        added,
        run_simulated(scenario, run, story, added),
        run_simulated(scenario, run, story, Added(0, 0, 0, 0, 0, 0)),
    )


def tables(comparisons: Iterable[Comparison]) -> list[Table]:
    results = Table(
        "Live and simulated, in dollars and hours of the trace",
        ("policy", "side", "total $", "difference", "instances", "migrations", "mean JCT h"),
    )
    delays = Table(
        "What the machine added to the delays, mean ms (and what that is in trace time, s)",
        ("policy", "acquire", "set up", "terminate", "start task", "checkpoint", "end task"),
    )
    for each in comparisons:
        for row in _rows(each):
            results.add(*row)
        delays.add(each.live.policy, *(_both(each.scenario, ms) for ms in _parts(each.added)))
    return [results, delays]


def _rows(each: Comparison) -> list[tuple[str, str, str, str, int, int, str]]:
    scenario, live = each.scenario, each.live
    lived_ms = fmean((job.ended_ms or job.submitted_ms) - job.submitted_ms for job in live.jobs)
    paid = [instance for instance in live.instances if instance.acquired_ms is not None]
    rows = [
        (
            live.policy,
            "live",
            f"{scenario.dollars(live.bill_micros):,.2f}",
            "",
            len(paid),
            sum(job.migrations for job in live.jobs),
            f"{scenario.trace_hours(lived_ms):.2f}",
        )
    ]
    sides = (("simulated", each.simulated), ("... without added delays", each.unmeasured))
    for side, result in sides:
        share = result.total_cost_micros / live.bill_micros - 1
        simulated_ms = fmean(row.jct_ms for row in result.jobs)
        rows.append(
            (
                live.policy,
                side,
                f"{scenario.dollars(result.total_cost_micros):,.2f}",
                f"{share:+.2%}",
                len(result.instances),
                result.migrations,
                f"{scenario.trace_hours(simulated_ms):.2f}",
            )
        )
    return rows


def _parts(added: Added) -> tuple[int, ...]:
    return (
        added.acquire_ms,
        added.setup_ms,
        added.terminate_ms,
        added.start_ms,
        added.stop_ms,
        added.exit_ms,
    )


def _both(scenario: Scenario, ms: int) -> str:
    return f"{ms} ({ms * scenario.scale / 1_000:.0f})"
