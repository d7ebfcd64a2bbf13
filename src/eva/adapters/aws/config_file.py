"""HOME/aws.yaml: what `eva aws init` made and `eva up --cloud aws` uses, one file for both.

Its fields are those of `AwsSettings` and a few more that only the account needs. It is read as
strictly as anything that people may edit: unknown, missing and unfit fields are all listed at once,
each with its line. What is left at its default is not written, so that a later version of Eva may
choose a better one.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints
from urllib.parse import urlencode

import yaml

from eva.adapters.aws.settings import AwsSettings
from eva.adapters.local.folder import write_text_durably
from eva.inputs.guarded_yaml import Entries, Items, Limits, Node, Scalar, plain, read_yaml
from eva.inputs.job_file import read_text
from eva.inputs.problems import Problems, did_you_mean
from eva.model.errors import InputError, OperatorError

FILE_NAME = "aws.yaml"
STORAGE_PREFIX = "storage"  # of the bucket: what jobs keep; beside it is Eva's own software

_LIMITS = Limits(characters=256 * 1024, depth=4, aliases=0, nodes=5_000)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_HEADER = """\
# What `eva aws init` made and `eva up --cloud aws` uses; docs/aws.md says what each field is.
# Change what you like and run `eva aws init` again; it keeps your values, but not your comments.
"""


@dataclass(frozen=True, slots=True)
class AwsConfig:
    """`settings` is what renting needs. The rest is the account's.

    The master's group and profile are for a master that runs on EC2 itself. `worker_ports` are the
    two ports of the master that its group opens to workers; without any, the master takes what is
    free. `image_parameter` is where the image was looked up; empty if somebody named it.
    """

    settings: AwsSettings
    bucket: str
    account: str = ""
    master_security_group: str = ""
    master_instance_profile: str = ""
    image_parameter: str = ""
    worker_ports: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not _BUCKET.fullmatch(self.bucket):
            raise InputError.single(
                "aws.bucket",
                f"{self.bucket!r} is no name of a bucket: use 3 to 63 small letters, digits, dots "
                "and hyphens",
            )
        ports = self.worker_ports
        if ports and (len(set(ports)) != 2 or not all(0 < port < 65_536 for port in ports)):
            raise InputError.single(
                "aws.worker_ports", f"{list(ports)} are not two different ports: write [7333, 7334]"
            )

    @property
    def storage(self) -> str:
        """Global storage as a URL, for `--storage`."""
        options = {"region": self.settings.region}
        if self.settings.endpoint:
            options["endpoint"] = self.settings.endpoint
        return f"s3://{self.bucket}/{STORAGE_PREFIX}?{urlencode(options)}"


def read(path: Path) -> AwsConfig:
    """The configuration at `path`, or an InputError with every problem in it."""
    if not path.exists():
        raise InputError.single(str(path), "does not exist: run `eva aws init` first")
    return parse(read_text(str(path)), str(path))


def parse(text: str, source: str) -> AwsConfig:
    problems = Problems(source)
    tree = read_yaml(text, problems, _LIMITS)
    if not isinstance(tree, Entries):
        raise problems.fail(tree.line, "must be a mapping of fields such as `region:`")
    values, unfit = _values(tree, problems)
    lines = {key.text: key.line for key, _ in tree.pairs}
    config = _made(values, unfit, lines, problems)
    problems.raise_if_any()
    if config is None:
        raise problems.fail(0, "is not an AWS configuration")
    return config


def write(path: Path, config: AwsConfig) -> None:
    """Durably, for its owner alone; a reader finds the old file or the new one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_text_durably(path, text_of(config))
    except OSError as error:
        raise OperatorError(
            f"{path} cannot be written ({error}): free space there, or mend its permissions"
        ) from error


def text_of(config: AwsConfig) -> str:
    """The file's text: what must be there, and what is not as it would be anyway."""
    found: dict[str, Any] = {}
    for holder in (config.settings, config):
        for field in dataclasses.fields(holder):
            value = getattr(holder, field.name)
            if field.name != "settings" and value != _default(field):
                found[field.name] = _as_yaml(value)
    return _HEADER + yaml.dump(found, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=96)


# Reading

_Made = TypeVar("_Made", AwsSettings, AwsConfig)
_STAND_IN = AwsSettings("x", "x", "x", ("x",))  # for settings that were refused and told


class _UnfitError(ValueError):
    """What a field must be and is not."""


def _text(node: Node) -> str:
    """As it was written: an account's number and a cluster called `1e5` are text too."""
    if not isinstance(node, Scalar) or node.is_null:
        raise _UnfitError("must be text")
    return node.text


def _optional_text(node: Node) -> str | None:
    return None if isinstance(node, Scalar) and node.is_null else _text(node)


def _texts(node: Node) -> tuple[str, ...]:
    if not isinstance(node, Items):
        raise _UnfitError("must be a list")
    return tuple(map(_text, node.nodes))


def _whole_numbers(node: Node) -> tuple[int, ...]:
    if not isinstance(node, Items):
        raise _UnfitError("must be a list")
    return tuple(map(_whole, node.nodes))


def _text_map(node: Node) -> dict[str, str]:
    if not isinstance(node, Entries):
        raise _UnfitError("must be a mapping")
    return {key.text: _text(value) for key, value in node.pairs}


def _value(node: Node) -> object:
    return plain(node, Problems("")) if isinstance(node, Scalar) else None


def _flag(node: Node) -> bool:
    value = _value(node)
    if not isinstance(value, bool):
        raise _UnfitError("must be true or false")
    return value


def _whole(node: Node) -> int:
    value = _value(node)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _UnfitError("must be a whole number")
    return value


def _number(node: Node) -> float:
    value = _value(node)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _UnfitError("must be a number")
    return float(value)


_READERS: Mapping[object, Callable[[Node], object]] = {
    str: _text,
    str | None: _optional_text,
    tuple[str, ...]: _texts,
    tuple[int, ...]: _whole_numbers,
    Mapping[str, str]: _text_map,
    bool: _flag,
    int: _whole,
    float: _number,
}


def _readers() -> dict[str, Callable[[Node], object]]:
    """By field, from its type."""
    found = {}
    for holder in (AwsSettings, AwsConfig):
        hints = get_type_hints(holder)
        for field in dataclasses.fields(holder):
            if field.name != "settings":
                found[field.name] = _READERS[hints[field.name]]
    return found


def _values(tree: Entries, problems: Problems) -> tuple[dict[str, Any], set[str]]:
    """What could be read, and the names of what could not."""
    readers = _readers()
    values, unfit = {}, set()
    for key, node in tree.pairs:
        reader = readers.get(key.text)
        if reader is None:
            hint = did_you_mean(key.text, readers) or f" (known: {', '.join(readers)})"
            problems.add(key.line, f"is not a field of {FILE_NAME}{hint}", key.text)
            continue
        try:
            values[key.text] = reader(node)
        except _UnfitError as error:
            problems.add(key.line, str(error), key.text)
            unfit.add(key.text)
    return values, unfit


def _made(
    values: dict[str, Any], unfit: set[str], lines: Mapping[str, int], problems: Problems
) -> AwsConfig | None:
    """The configuration; what makes it refuse its values is told beside what was found before."""
    required = [
        field.name
        for holder in (AwsSettings, AwsConfig)
        for field in dataclasses.fields(holder)
        if field.name != "settings" and _default(field) is dataclasses.MISSING
    ]
    for name in required:
        if name not in values and name not in unfit:
            problems.add(0, "is missing", name)
            unfit.add(name)
    filled = dict.fromkeys(required, "unreadable") | values
    ours = {field.name for field in dataclasses.fields(AwsConfig)}

    def built(build: Callable[[], _Made]) -> _Made | None:
        try:
            return build()
        except InputError as error:
            for problem in error.problems:
                name = problem.where.removeprefix("aws.")
                if name not in unfit:
                    problems.add(lines.get(name, 0), problem.message, name)
            return None

    settings = built(lambda: AwsSettings(**{k: v for k, v in filled.items() if k not in ours}))
    rest = {k: v for k, v in filled.items() if k in ours}
    return built(lambda: AwsConfig(settings or _STAND_IN, **rest))


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


# Writing


class _Dumper(yaml.SafeDumper):
    """Scripts as blocks of lines."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def _as_yaml(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value
