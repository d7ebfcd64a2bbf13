"""What the results of an experiment's cells say together: means over seeds, and its claims."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from eva.evaluation.cell import Cell
from eva.evaluation.cell_run import Measures
from eva.evaluation.experiment import Claim, Experiment, Scale
from eva.evaluation.results import Results

RELATIVE_COST = "relative_cost"  # the cost over that of the baseline, same value, same seed
COST = "total_cost_usd"
_TOLERANCE = 0.005  # ranges are published in whole percent

Point = tuple[float | None, str]  # value of the parameter, policy


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over seeds; `spread` is the standard deviation, None with one seed."""

    mean: float
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The range of what a claim is about, and whether it lies in the claimed one."""

    claim: Claim
    low: float
    high: float

    @property
    def holds(self) -> bool:
        least, most = self.claim.between
        return (least is None or self.low >= least - _TOLERANCE) and (
            most is None or self.high <= most + _TOLERANCE
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    experiment: Experiment
    scale: Scale
    trace: str
    code: str
    points: Mapping[Point, Mapping[int, Measures]]
    references: Mapping[float | None, Measures] = field(default_factory=dict)

    @property
    def seeds(self) -> int:
        return self.scale.seeds or self.experiment.seeds

    @property
    def jobs(self) -> int | None:
        return self.scale.jobs_of(self.experiment)

    def figure(self, value: float | None, policy: str, measure: str) -> Figure | None:
        """None where nothing was measured."""
        found = list(self.by_seed(value, policy, measure).values())
        if not found:
            return None
        return Figure(statistics.fmean(found), statistics.stdev(found) if len(found) > 1 else None)

    def by_seed(self, value: float | None, policy: str, measure: str) -> dict[int, float]:
        here = self.points.get((value, policy), {})
        if measure != RELATIVE_COST:
            return {seed: it[measure] for seed, it in here.items() if measure in it}
        base = self.points.get((value, self.experiment.baseline), {})
        return {
            seed: it[COST] / base[seed][COST]
            for seed, it in here.items()
            if seed in base and base[seed][COST]
        }

    @property
    def verdicts(self) -> list[Verdict]:
        return [
            Verdict(claim, min(found), max(found))
            for claim in self.experiment.claims
            if (found := list(self._claimed(claim)))
        ]

    def _claimed(self, claim: Claim) -> Iterable[float]:
        for value in self.experiment.values:
            ours = self.figure(value, claim.policy, claim.measure)
            if ours is None:
                continue
            if not claim.against:
                yield ours.mean
            for other in claim.against:
                theirs = self.figure(value, other, claim.measure)
                if theirs is not None and theirs.mean:
                    yield ours.mean / theirs.mean


def outcome_of(
    experiment: Experiment, cells: Sequence[Cell], results: Results, scale: Scale, code: str
) -> Outcome:
    """Of the cells that have a result."""
    points: defaultdict[Point, dict[int, Measures]] = defaultdict(dict)
    references: defaultdict[float | None, list[Measures]] = defaultdict(list)
    parameter = experiment.vary.parameter if experiment.vary else None
    for cell in cells:
        measures = results.get(cell)
        value = None if parameter is None else float(getattr(cell, parameter))
        if measures is None:
            continue
        if cell.is_bounds:
            references[value].append(measures)
        else:
            points[value, cell.policy][cell.seed] = measures
    means = {value: _means(found) for value, found in references.items()}
    return Outcome(experiment, scale, _trace_of(cells), code, dict(points), means)


def _means(found: Sequence[Measures]) -> Measures:
    return {name: statistics.fmean(one[name] for one in found) for name in found[0]}


def _trace_of(cells: Sequence[Cell]) -> str:
    """In words for people; paths of somebody's machine are cut down to the file's name."""
    source = cells[0].source
    if source.file is not None:
        return f"{source.name} durations, jobs of {source.file.rpartition('/')[2]}"
    if source.name in {"alibaba", "gavel"}:
        return f"{source.name} durations, synthetic trace"
    return source.name
