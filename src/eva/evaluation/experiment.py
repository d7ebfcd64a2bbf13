"""An experiment as data: which policies, on which trace, with which parameter varied.

The paper's experiments lie in `experiments/`, one file each; anybody's own file is read the same
way. What a file says becomes cells (policy x value x seed), and cells are what is run and kept.
"""

from __future__ import annotations

from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from eva.evaluation.cell import Cell, TraceSource
from eva.evaluation.references import Bounds
from eva.inputs.guarded_yaml import line_of, plain, read_yaml
from eva.inputs.problems import Problems, did_you_mean
from eva.model.errors import InputError
from eva.scheduling.policies import POLICY_NAMES
from eva.traces.content import read_text

Parameter = Literal[
    "tasks", "interference", "delay_factor", "multi_gpu", "multi_task", "jobs_per_hour"
]
TraceName = Literal["alibaba", "gavel", "physical-32", "physical-120", "multi-task", "tasks"]
_FOLDER = "experiments"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Vary(_Part):
    """One parameter, with the values that it takes; `label` names the axis."""

    parameter: Parameter
    label: str
    values: tuple[float, ...] = Field(min_length=1)
    higher_is: Literal["right", "left"] = "right"


class Figure(_Part):
    """One plot over the varied parameter, or over the policies where none is varied."""

    measure: str
    label: str
    policies: tuple[str, ...] = ()  # none: all
    log: bool = False


class Claim(_Part):
    """What the paper says of the figures, in a form that ours can be held against.

    The measure of `policy`, over that of each of `against` where there are any, at every value of
    the parameter: the range of it is reported beside `between`.
    """

    text: str
    measure: str
    policy: str
    against: tuple[str, ...] = ()
    between: tuple[float | None, float | None]


class Experiment(_Part):
    name: str = ""
    title: str
    source: str
    about: str
    kind: Literal["simulation", "packing"] = "simulation"
    trace: TraceName
    cpus: Literal["vcpus", "physical_cores"] = "vcpus"  # what of the catalog counts as CPUs
    first: int | None = None  # jobs by default; `--full` takes the whole trace
    policies: tuple[str, ...] = Field(min_length=1)
    labels: dict[str, str] = {}
    baseline: str
    vary: Vary | None = None
    seeds: int = Field(default=1, ge=1)
    bounds: Bounds = Bounds.NONE
    columns: dict[str, str]  # measure: heading
    figures: tuple[Figure, ...] = ()
    published: tuple[dict[str, float | str], ...] = ()
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()  # why ours differ, where they do
    minutes: float  # of processor time, roughly, as it runs by default

    @model_validator(mode="after")
    def _check_policies(self) -> Experiment:
        named = {*self.policies, self.baseline, *self.labels}
        for name in sorted(named - {*POLICY_NAMES}):
            raise ValueError(f"{name!r} is not a policy{did_you_mean(name, POLICY_NAMES)}")
        if self.baseline not in self.policies:
            raise ValueError(f"the baseline {self.baseline!r} is not among the policies")
        return self

    @property
    def values(self) -> tuple[float | None, ...]:
        return (None,) if self.vary is None else self.vary.values

    def label(self, policy: str) -> str:
        return self.labels.get(policy, policy)


class Scale(BaseModel):
    """How much of an experiment is run. `most_jobs` is what `--quick` and `--first` cut down to."""

    model_config = ConfigDict(frozen=True)

    seeds: int | None = None
    full: bool = False
    most_jobs: int | None = None

    def jobs_of(self, experiment: Experiment) -> int | None:
        limits = [self.most_jobs, None if self.full else experiment.first]
        return min((limit for limit in limits if limit is not None), default=None)


def cells_of(experiment: Experiment, trace_file: Path | None, scale: Scale) -> list[Cell]:
    """Everything that has to be run for an experiment, dearest last value first."""
    source = TraceSource.of(experiment.trace, trace_file)
    shared = Cell(
        kind=experiment.kind,
        source=source,
        cpus=experiment.cpus,
        policy="",
        seed=0,
        first=scale.jobs_of(experiment),
    )
    seeds = range(scale.seeds or experiment.seeds)
    cells = [
        shared.with_parameter(experiment.vary.parameter if experiment.vary else None, value).of(
            policy, seed
        )
        for value, policy, seed in product(experiment.values, experiment.policies, seeds)
    ]
    if experiment.bounds is not Bounds.NONE:
        cells += [
            shared.with_parameter(
                experiment.vary.parameter if experiment.vary else None, value
            ).bounds(experiment.bounds, seed)
            for value, seed in product(experiment.values, seeds)
        ]
    return cells


def built_in() -> dict[str, Experiment]:
    """The paper's experiments by name, in the order of the paper."""
    folder = resources.files("eva.evaluation").joinpath(_FOLDER)
    found: dict[str, Experiment] = {}
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".yaml"):
            name = entry.name.removesuffix(".yaml").partition("-")[2]  # 03-multi-task.yaml
            found[name] = read_experiment(entry.read_text("utf-8"), entry.name, name)
    return found


def find(name: str) -> list[Experiment]:
    """By name, `all` of them, or from a file."""
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        return [read_experiment(read_text(path), name, path.stem)]
    known = built_in()
    if name == "all":
        return list(known.values())
    if name not in known:
        hint = did_you_mean(name, known)
        raise InputError.single(
            "experiment",
            f"{name!r} is no experiment{hint} (known: {', '.join(known)}, all, or a YAML file)",
        )
    return [known[name]]


def read_experiment(text: str, source: str, name: str) -> Experiment:
    problems = Problems(source)
    tree = read_yaml(text, problems)
    content: Any = plain(tree, problems)
    problems.raise_if_any()
    try:
        return Experiment.model_validate(content).model_copy(update={"name": name})
    except ValidationError as error:
        for found in error.errors():
            field = ".".join(str(step) for step in found["loc"]) or None
            message = found["msg"].removeprefix("Value error, ")
            problems.add(line_of(tree, found["loc"]), message, field)
        problems.raise_if_any()
        raise
