"""Policies over one trace: every one under the same truth, each with a fresh controller.

Several at once take a process each where there is enough to do; the figures are the same.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eva.control.events import Event, TaskExited
from eva.control.journal import Codec
from eva.evaluation.references import References
from eva.evaluation.report import Report
from eva.evaluation.stays import Stay, Stays
from eva.evaluation.workers import Advance, count_ended, workers
from eva.model.catalog import Catalog
from eva.scheduling.policies import policy
from eva.simulator.driver import EventSink, Simulation
from eva.simulator.settings import SimulationSettings
from eva.traces.trace import Trace
from eva.traces.whole_file import whole_file

Watch = Callable[[Simulation], EventSink]
_WORTH_A_PROCESS = 1_000  # jobs; below, starting processes takes as long as they save


@dataclass(frozen=True, slots=True)
class Scenario:
    """All that a simulation depends on but the policy."""

    trace: Trace
    catalog: Catalog
    settings: SimulationSettings


@dataclass(frozen=True, slots=True)
class Wish:
    """One policy by name, and what to write or keep beside its report."""

    policy: str
    events: Path | None = None
    keep_stays: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    report: Report
    stays: tuple[Stay, ...] = ()


def compare(
    scenario: Scenario,
    references: References,
    wishes: Sequence[Wish],
    advance: Advance,
    processes: int,
) -> list[Run]:
    """One run per wish, in their order. `advance` is told of tasks as they end."""
    count = min(processes, len(wishes))
    if count <= 1 or len(scenario.trace) < _WORTH_A_PROCESS:
        return [run(scenario, references, wish, advance) for wish in wishes]
    with workers(count) as pool:
        futures = [pool.submit(_run_counted, scenario, references, wish) for wish in wishes]
        for future in pool.as_completed(set(futures), advance):
            future.result()  # raises what went wrong, and ends the others
        return [future.result() for future in futures]


def run(scenario: Scenario, references: References, wish: Wish, advance: Advance) -> Run:
    """Simulate one policy to the end of the trace."""
    stays = Stays()
    watchers: list[Watch] = [_ends(advance)]
    if wish.keep_stays:
        watchers.append(stays.watch)
    with contextlib.ExitStack() as stack:
        if wish.events is not None:
            file = stack.enter_context(whole_file(wish.events))
            watchers.append(_journal(file.write, scenario.catalog))
        stack.enter_context(_garbage_rarely_collected())
        began_s = time.process_time()
        result = _simulation(scenario, wish.policy, watchers).run()
        spent_s = time.process_time() - began_s
    return Run(Report(result, references, spent_s), tuple(stays.ended))


@contextlib.contextmanager
def _garbage_rarely_collected() -> Iterator[None]:
    """A simulation makes values, which reference counts clear up, and next to no cycles: looking
    for those at the usual rate takes a fifteenth of its time.
    """
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _run_counted(scenario: Scenario, references: References, wish: Wish) -> Run:
    return run(scenario, references, wish, count_ended)


def _simulation(scenario: Scenario, name: str, watchers: Sequence[Watch]) -> Simulation:
    sinks: list[EventSink] = []

    def tell(now_ms: int, event: Event) -> None:
        for sink in sinks:
            sink(now_ms, event)

    made = Simulation(scenario.trace, policy(name), scenario.catalog, scenario.settings, tell)
    sinks += [watch(made) for watch in watchers]
    return made


def _ends(advance: Advance) -> Watch:
    def see(_now_ms: int, event: Event) -> None:
        if isinstance(event, TaskExited) and event.exit_code == 0:
            advance(1)

    return lambda _simulation: see


def _journal(write: Callable[[bytes], object], catalog: Catalog) -> Watch:
    """Records of the journal's own codec: they fold back into a controller's state."""
    codec = Codec(catalog)

    def see(now_ms: int, event: Event) -> None:
        write(codec.line(now_ms, event))

    return lambda _simulation: see
