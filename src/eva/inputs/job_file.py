"""The job file: what a user writes to have something run, in the words that SkyPilot users know.

The model below is the one definition of the format: it checks files, the JSON schema for editors
is exported from it, and the reference in the documentation is generated from that schema. Files
are read as from strangers (size, depth and aliases are limited, no path leaves the folder), and
everything that is wrong is listed at once, by line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from eva.inputs.files import STDIN, read_bytes
from eva.inputs.guarded_yaml import Entries, Limits, Node, line_of, plain, read_yaml
from eva.inputs.job_words import (
    Cpus,
    Duration,
    Gpus,
    Image,
    InnerPath,
    Memory,
    Name,
    Program,
    Rate,
    Regex,
    SecretVariables,
    Signal,
    Variables,
    check_passable,
)
from eva.inputs.problems import Problems, did_you_mean
from eva.model.errors import InputError
from eva.model.jobs import StandaloneThroughput
from eva.model.resources import Demand, Resources
from eva.model.units import MS_PER_SECOND

LIMITS = Limits(characters=256 * 1024, depth=8, aliases=20, nodes=5_000)
MOST_NODES = 256
MOST_RETRIES = 1_000
MOST_PRIORITY = 1_000


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


class FamilyResources(_Strict):
    """What a task needs instead on one instance family; what is left out stays as it is."""

    gpus: Gpus | None = Field(default=None, description="GPUs on this family.")
    cpus: Cpus | None = Field(default=None, description="CPUs on this family.")
    memory: Memory | None = Field(default=None, description="Memory on this family.")


class JobResources(_Strict):
    """What every task of the job needs."""

    gpus: Gpus = Field(default=0, description="Whole GPUs of one task; GPUs are never shared.")
    cpus: Cpus = Field(
        default=1_000, description="CPUs of one task.", json_schema_extra={"default": 1}
    )
    memory: Memory = Field(
        default=1_024,
        description="Memory of one task, and its limit.",
        json_schema_extra={"default": "1GB"},
    )
    use_spot: bool = Field(
        default=False,
        description="Whether the job may run where the cloud can take instances back at two "
        "minutes' notice, for less money. It is then saved, if it can be, and started elsewhere.",
    )
    shm_size: Memory | None = Field(default=None, description="Size of /dev/shm in a container.")
    per_family: dict[str, FamilyResources] = Field(
        default_factory=dict,
        description="Other amounts on some instance families, such as `{c7i: {cpus: 6}}`.",
    )

    @property
    def demand(self) -> Demand:
        default = Resources(self.gpus, self.cpus, self.memory)
        return Demand(
            default,
            tuple(
                (
                    family,
                    Resources(
                        default.gpus if other.gpus is None else other.gpus,
                        default.cpu_millis if other.cpus is None else other.cpus,
                        default.memory_mib if other.memory is None else other.memory,
                    ),
                )
                for family, other in self.per_family.items()
            ),
            self.use_spot,
        )


class Throughput(_Strict):
    """Iterations per second of one task that runs alone."""

    default: Rate | None = Field(default=None, description="On every family that is not named.")
    per_family: dict[str, Rate] = Field(
        default_factory=dict, description="On some instance families."
    )


class Progress(_Strict):
    """How the steps of a job are known that does not use EvaIterator."""

    regex: Regex | None = Field(
        default=None,
        description="Finds the step number in a line of output, such as `'step (\\d+)'`.",
    )
    window: Duration = Field(
        default=600 * MS_PER_SECOND,
        description="The time over which throughput is measured.",
        json_schema_extra={"default": "10m"},
    )


class Checkpoint(_Strict):
    """How a running task saves its progress before it moves.

    Programs that use EvaIterator, or speak its protocol, are asked over their socket and need
    nothing of this.
    """

    signal: Signal | None = Field(
        default=None,
        description="The signal that asks a task for a checkpoint, if it does not listen on its "
        "socket.",
    )
    grace: Duration = Field(
        default=120 * MS_PER_SECOND,
        description="How long a task may take to write one. After that it keeps running.",
        json_schema_extra={"default": "2m"},
    )
    path: InnerPath | None = Field(
        default=None,
        description="For programs that save to one place of their own accord: that file or folder "
        "below `$EVA_JOB_DIR`. Such a task is sent `signal` (TERM if none), given `grace`, and "
        "started again elsewhere, where it finds the same folder.",
    )
    restart: bool = Field(
        default=False,
        description="A task that cannot save its progress may be moved all the same, and begins "
        "anew. Without this it stays where it is.",
    )


class JobFile(_Strict):
    """One job: `num_nodes` equal tasks that start together and depend on each other."""

    model_config = ConfigDict(title="Eva job file")

    name: Name | None = Field(
        default=None, description="What to call it; the file's name by default."
    )
    workload: Name | None = Field(
        default=None,
        description="The name under which the behaviour of the tasks is learned. By default a "
        "fingerprint of image, script and resources, so that equal jobs learn from each other.",
    )
    workdir: InnerPath | None = Field(
        default=None, description="A folder beside the job file that every task gets a copy of."
    )
    num_nodes: int = Field(
        default=1, ge=1, le=MOST_NODES, description="Tasks of the job, started together (a gang)."
    )
    envs: Variables = Field(default_factory=dict, description="Environment variables.")
    secrets: SecretVariables = Field(
        default_factory=dict,
        description="Environment variables that are encrypted where they are kept and never shown. "
        "A name without a value is taken from the environment of `eva submit`.",
    )
    file_mounts: dict[InnerPath, InnerPath] = Field(
        default_factory=dict,
        description="Further files: where in the working directory, and from where beside the job "
        "file.",
    )
    setup: Program | None = Field(
        default=None,
        description="A script that runs before `run` at every start, migrations included.",
    )
    run: Program = Field(
        description="What to run: a shell script, or a list of words that no shell sees."
    )
    image: Image | None = Field(default=None, description="A container image to run in.")
    dockerfile: InnerPath | None = Field(
        default=None,
        description="A Dockerfile inside `workdir`, built once per cluster. Instead of `image`.",
    )
    resources: JobResources = Field(
        default_factory=JobResources, description="What each task needs."
    )
    throughput: Throughput | None = Field(
        default=None,
        description="Steps per second of a task that runs alone: a number, or "
        "`{default: ..., per_family: {...}}`. What nobody states is measured.",
    )
    progress: Progress = Field(default_factory=Progress, description="How steps are counted.")
    checkpoint: Checkpoint = Field(default_factory=Checkpoint, description="How it is saved.")
    retries: int = Field(
        default=0, ge=0, le=MOST_RETRIES, description="How often a failed job is started again."
    )
    max_duration: Duration | None = Field(
        default=None, description="A job that has run this long since its first start is stopped."
    )
    priority: int = Field(
        default=0,
        ge=-MOST_PRIORITY,
        le=MOST_PRIORITY,
        description="Kept with the job and shown; placement does not look at it.",
    )

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:
        if isinstance(value, dict):
            speed = value.get("throughput")
            if isinstance(speed, (int, float)) and not isinstance(speed, bool):
                value = value | {"throughput": {"default": speed}}
        return value

    @model_validator(mode="after")
    def _belongs_together(self) -> JobFile:
        if self.image is not None and self.dockerfile is not None:
            raise ValueError("has both image and dockerfile; keep one of them")
        if self.dockerfile is not None and self.workdir is None:
            raise ValueError("has a dockerfile but no workdir that it could be in; add workdir: .")
        shared = sorted(self.envs.keys() & self.secrets.keys())
        if shared:
            raise ValueError(f"has {', '.join(shared)} both in envs and in secrets; keep one")
        for family, demand in (
            ("", self.resources.demand.default),
            *self.resources.demand.per_family,
        ):
            if demand is not None and not any(demand):
                where = f" on family {family}" if family else ""
                raise ValueError(f"asks for nothing{where}; a task needs a GPU, CPU or memory")
        if isinstance(self.setup, tuple) or (self.setup and isinstance(self.run, tuple)):
            raise ValueError("has a setup, so setup and run must both be scripts, not lists")
        return self

    @property
    def standalone(self) -> StandaloneThroughput:
        if self.throughput is None:
            return StandaloneThroughput()
        return StandaloneThroughput(
            self.throughput.default, tuple(self.throughput.per_family.items())
        )


def load(path: str) -> JobFile:
    """The job in the file at `path`; `-` is standard input."""
    return parse(read_text(path), source_of(path))


def read_text(path: str) -> str:
    """The file's text, with a clear word about what cannot be read."""
    source = source_of(path)
    raw = read_bytes(path, LIMITS.characters * 4 + 1, source)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Problems(source).fail(0, f"is not UTF-8 text (byte {error.start})") from error


def source_of(path: str) -> str:
    """How problems name the file at `path`."""
    return "standard input" if path == STDIN else path


def parse(text: str, source: str) -> JobFile:
    """The job that `text` describes, or an InputError with every problem in it."""
    problems = Problems(source)
    tree = read_yaml(text, problems, LIMITS)
    if not isinstance(tree, Entries):
        raise problems.fail(tree.line, "must be a mapping of fields such as `run:`")
    values = plain(tree, problems)
    try:
        job = JobFile.model_validate(values)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            _complain(problems, tree, detail)
        job = None
    problems.raise_if_any()
    if job is None:
        raise problems.fail(0, "is not a job file")
    if job.name is None:
        name = _name_of(source)
        job = job.model_copy(update={"name": name})
    return job


def _name_of(source: str) -> str:
    stem = Path(source).stem if source not in {"-", "standard input"} else "job"
    kept = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in stem)
    return kept.strip("-")[:63].strip("-") or "job"


_MESSAGES = {
    "missing": "is missing",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "list_type": "must be a list",
}


def _complain(problems: Problems, tree: Node, detail: ErrorDetails) -> None:
    path: Sequence[str | int] = [step for step in detail["loc"] if step != "[key]"]
    line = _line(tree, path)
    field = ".".join(map(str, path)) or None
    kind = detail["type"]
    if kind == "extra_forbidden":
        known = _fields_at(path[:-1])
        hint = did_you_mean(str(path[-1]), known) or f" (known: {', '.join(known)})"
        problems.add(line, f"is not a field of a job file{hint}", field)
    elif kind == "value_error":
        problems.add(line, str(detail["ctx"]["error"]), field)
    else:
        message = detail["msg"]
        message = message.replace("Input should be", "must be").replace("Value", "value")
        problems.add(line, _MESSAGES.get(kind, message), field)


def _line(tree: Node, path: Sequence[str | int]) -> int:
    """The line of the field's name: a value that is a block starts further down."""
    for depth in range(len(path), 0, -1):
        parent: Node | None = tree
        for step in path[: depth - 1]:
            parent = parent.get(str(step)) if isinstance(parent, Entries) else None
        if isinstance(parent, Entries):
            for key, _ in parent.pairs:
                if key.text == str(path[depth - 1]):
                    return key.line
    return line_of(tree, path) if path else 0


def _fields_at(path: Sequence[str | int]) -> list[str]:
    """The fields that may stand in the mapping at `path`."""
    model: type[BaseModel] = JobFile
    for step in path:
        info = model.model_fields.get(str(step))
        if info is None:
            continue  # the name of a family
        found = _model_in(info.annotation)
        if found is None:
            return []
        model = found
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _model_in(arg))), None)


def json_schema() -> dict[str, Any]:
    """The format for editors: `# yaml-language-server: $schema=...`."""
    schema = JobFile.model_json_schema()
    short = {"type": "number", "exclusiveMinimum": 0}
    throughput = schema["properties"]["throughput"]
    throughput["anyOf"] = [short, *throughput["anyOf"]]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def missing_secrets(job: JobFile, environment: Mapping[str, str]) -> dict[str, str]:
    """The values of all secrets, those without one taken from `environment`."""
    missing = [n for n, v in job.secrets.items() if v is None and n not in environment]
    if missing:
        raise InputError.single(
            f"secrets: {', '.join(missing)}",
            "no value here and none in the environment; export it, then submit again",
        )
    found = {n: environment[n] if v is None else v for n, v in job.secrets.items()}
    for name, value in found.items():
        try:
            check_passable(value)
        except ValueError as error:
            raise InputError.single(f"secrets: {name}", str(error)) from None
    if sum(map(len, found.values())) > LIMITS.characters:
        raise InputError.single(
            "secrets", f"are longer than {LIMITS.characters:,} characters together: use a file"
        )
    return found
