"""Running one cell, in whatever process: a cell in, a flat mapping of measures out."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from pathlib import Path

from eva.evaluation.cell import Cell, code_version
from eva.evaluation.comparison import Scenario, Wish, run
from eva.evaluation.references import Bounds, references_of
from eva.inputs.catalogs import load as load_catalog
from eva.model.catalog import Catalog
from eva.model.errors import OperatorError
from eva.model.ids import JobId, task_id
from eva.model.snapshot import ClusterSnapshot, TaskView
from eva.model.units import MICROS_PER_USD, MS_PER_HOUR
from eva.scheduling.policies import policy
from eva.simulator.settings import DelaySettings, SimulationSettings
from eva.traces import sampled, synthetic, variations
from eva.traces.drawing import Drawing, Durations
from eva.traces.interference import MEASURED, uniform
from eva.traces.load import load_trace
from eva.traces.trace import Trace

Measures = Mapping[str, float]
_CATALOG = "paper"
_PLANNINGS = 3  # of which the median time is taken


def run_cell(cell: Cell) -> Measures:
    catalog = load_catalog(_CATALOG, cell.cpus)
    trace = make_trace(cell, catalog)
    if cell.kind == "packing":
        return _plan(cell, trace, catalog)
    settings = _settings(cell)
    if cell.is_bounds:
        found = references_of(trace, catalog, settings, Bounds(cell.wanted_bounds))
        named = {
            "no_packing_cost_usd": found.no_packing_micros,
            "lower_bound_usd": found.lower_bound_micros,
            "lower_bound_with_interference_usd": found.slowed_bound_micros,
            "practical_floor_usd": found.floor_micros,
        }
        return {name: micros / MICROS_PER_USD for name, micros in named.items() if micros}
    references = references_of(trace, catalog, settings, Bounds.NONE)
    scenario = Scenario(trace, catalog, settings)
    return flat(run(scenario, references, Wish(cell.policy), _nobody_watches).report.as_json())


def run_cell_elsewhere(cell: Cell, code: str) -> Measures:
    """On a machine that may have another Eva installed."""
    if code_version() != code:
        raise OperatorError(
            f"a Dask worker runs another version of Eva ({code_version()}, here {code}); install "
            "the same one there"
        )
    return run_cell(cell)


def make_trace(cell: Cell, catalog: Catalog) -> Trace:
    """The trace of a cell, with everything about it that its parameters change."""
    trace = _source(cell, catalog)
    if cell.first is not None:
        trace = trace.first(cell.first)
    if cell.multi_gpu is not None:
        trace = variations.with_multi_gpu(trace, cell.multi_gpu, catalog, cell.seed)
    if cell.multi_task is not None:
        trace = variations.with_multi_task(trace, cell.multi_task, cell.seed)
    if cell.jobs_per_hour is not None:
        mean_ms = round(MS_PER_HOUR / cell.jobs_per_hour)
        trace = variations.with_poisson_arrivals(trace, mean_ms, cell.seed)
    return trace


def _source(cell: Cell, catalog: Catalog) -> Trace:
    name, seed = cell.source.name, cell.seed
    if name in {"alibaba", "gavel"}:
        drawing = Drawing(seed, Durations.GAVEL if name == "gavel" else Durations.TRACED)
        if cell.source.file is None:
            return synthetic.synthetic_trace(drawing)
        trace = load_trace(Path(cell.source.file), catalog, drawing=drawing)
        return variations.with_gavel_durations(trace, seed) if name == "gavel" else trace
    sampling = {
        "physical-32": sampled.SMALL_PHYSICAL,
        "physical-120": sampled.LARGE_PHYSICAL,
        "multi-task": sampled.MULTI_TASK_BENCHMARK,
        "tasks": sampled.tasks_at_once(cell.tasks or 200),
    }[name]
    return sampled.sampled_trace(name, sampling, seed)


def _settings(cell: Cell) -> SimulationSettings:
    truth = MEASURED if cell.interference is None else uniform(cell.interference)
    scale = 1.0 if cell.delay_factor is None else cell.delay_factor
    delays = DelaySettings(task_scale=scale, seed=cell.seed)
    return SimulationSettings(interference=truth, delays=delays, noise_seed=cell.seed)


def _plan(cell: Cell, trace: Trace, catalog: Catalog) -> Measures:
    """One round on an empty cluster: what the plan costs per hour and how long it took."""
    tasks = tuple(
        TaskView(task_id(JobId(job.id), 0), job.id, job.spec.tasks[0]) for job in trace.jobs
    )
    took_s: list[float] = []
    for _ in range(_PLANNINGS):
        chosen = policy(cell.policy)
        snapshot = ClusterSnapshot(0, catalog, tasks)
        began_s = time.perf_counter()
        plan = chosen.plan(snapshot)
        took_s.append(time.perf_counter() - began_s)
    return {
        "total_cost_usd": plan.hourly_micros / MICROS_PER_USD,
        "instances": float(len(plan.instances)),
        "planning_s": statistics.median(took_s),
    }


def flat(tree: Mapping[str, object], prefix: str = "") -> dict[str, float]:
    """Numbers of a report by dotted name; the uptime distribution by share."""
    found: dict[str, float] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            points = {f"{point['share']:g}": point["hours"] for point in value}
            found |= flat(points, f"{prefix}{name}.")
        elif isinstance(value, (int, float)):
            found[prefix + name] = float(value)
    return found


def _nobody_watches(_ended: int) -> None:
    pass
