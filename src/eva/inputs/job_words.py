"""The kinds of values that a job file is made of: how people write them, and what we make of them.

Each kind is one function from what was written to our integers, with the JSON schema that says the
same to editors. A message says what to write instead; the reader adds file and line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from eva.inputs.amounts import CPUS, GPUS, MEMORY_GB, parse_amount, parse_number
from eva.model.units import MIB_PER_GB, MS_PER_HOUR, MS_PER_SECOND, scaled

LONGEST_MS = 366 * 24 * MS_PER_HOUR
_UNITS_MS = {
    "": MS_PER_SECOND,
    "ms": 1,
    "s": MS_PER_SECOND,
    "m": 60 * MS_PER_SECOND,
    "h": MS_PER_HOUR,
    "d": 24 * MS_PER_HOUR,
}
_DURATION = re.compile(r"([0-9.eE+-]+?)\s*(ms|s|m|h|d|)")
_MEMORY = re.compile(r"([0-9.eE+-]+?)\s*(?:(M|G|T)i?B?|)", re.IGNORECASE)
_MIB_OF = {"M": 1, "G": MIB_PER_GB, "T": MIB_PER_GB * MIB_PER_GB}
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_LONGEST_REGEX = 500
_LONGEST_STRING = 100_000  # bytes; Linux starts no program with one over 128 KiB
# [HOST[:PORT]/]NAME[/NAME...][:TAG][@DIGEST], as registries spell it.
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
_PART = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_TAG = r":[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
_DIGEST = r"@[A-Za-z][A-Za-z0-9+._-]*:[0-9a-fA-F]{32,}"
_IMAGE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?:{_TAG})?(?:{_DIGEST})?")
_LONGEST_IMAGE = 255
SIGNALS = ("TERM", "INT", "HUP", "USR1", "USR2")
RESERVED_PREFIX = "EVA_"


def _as_text(value: object, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _wrong_kind(what, value)
    return str(value)


def _wrong_kind(wanted: str, value: object, name: str = "") -> ValueError:
    """A ValueError and no TypeError, which the model would let through."""
    kinds = {bool: "true or false", dict: "a mapping", list: "a list", type(None): "nothing"}
    found = kinds.get(type(value), repr(value))
    return ValueError(f"{name} must be {wanted}, not {found}".strip())


def duration_ms(value: object) -> int:
    """`90`, `90s`, `15m`, `2h`, `1d` in milliseconds."""
    text = _as_text(value, "a duration such as 90s, 15m or 2h").strip()
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration; write one such as 90s, 15m, 2h or 1d")
    number = parse_number(match[1])
    if number <= 0:
        raise ValueError(f"{text} is not a duration; it must be more than 0")
    if number * _UNITS_MS[match[2]] > LONGEST_MS:
        raise ValueError(f"{text} is longer than a year")
    return max(1, scaled(number, _UNITS_MS[match[2]]))


def memory_mib(value: object) -> int:
    """`16` (GB), `16GB`, `512MB` in MiB."""
    text = _as_text(value, "an amount of memory such as 16GB").strip()
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an amount of memory; write one such as 16GB or 512MB")
    number = parse_number(match[1])
    mib = _MIB_OF[(match[2] or "G").upper()]
    if mib == MIB_PER_GB:
        return parse_amount(match[1], MEMORY_GB)
    return parse_amount(str(number * mib / MIB_PER_GB), MEMORY_GB)


def cpu_millis(value: object) -> int:
    return parse_amount(_as_text(value, "a number of CPUs"), CPUS)


def gpu_count(value: object) -> int:
    return parse_amount(_as_text(value, "a whole number of GPUs"), GPUS)


def rate(value: object) -> float:
    """Iterations per second."""
    number = parse_number(_as_text(value, "a number of iterations per second"))
    if number <= 0:
        raise ValueError(f"{value} is not a speed; it must be more than 0")
    return float(number)


def job_name(value: object) -> str:
    text = _as_text(value, "a name")
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} cannot be a name: use up to 63 letters, digits, dots, dashes and "
            "underscores, beginning and ending with a letter or digit"
        )
    return text


def image_reference(value: object) -> str:
    text = _as_text(value, "an image such as python:3.11")
    if len(text) > _LONGEST_IMAGE or not _IMAGE.fullmatch(text):
        raise ValueError(
            f"{text!r} is not an image reference; write one such as python:3.11 or "
            "registry.example.com/team/train:2"
        )
    return text


def inner_path(value: object) -> str:
    """A relative path that does not leave the folder it is relative to."""
    text = _as_text(value, "a path")
    path = PurePosixPath(text)
    if not text or "\0" in text or "\\" in text:
        raise ValueError(f"{text!r} is not a path")
    if path.is_absolute() or text.startswith("~"):
        raise ValueError(f"{text!r} must be relative to the folder of the job file")
    if ".." in path.parts:
        raise ValueError(f"{text!r} leaves the folder of the job file; copy what it names into it")
    return str(path)


def variables(value: object) -> dict[str, str]:
    """A mapping of environment variables; numbers and booleans become text."""
    if not isinstance(value, dict):
        raise _wrong_kind("a mapping of names to values", value)
    for name in value:
        check_variable(name)
    return {name: _variable_text(name, text) for name, text in value.items()}


def secret_variables(value: object) -> dict[str, str | None]:
    """As `variables`, or null for what the submitter's own environment holds."""
    if isinstance(value, list):
        value = dict.fromkeys(map(str, value))
    if not isinstance(value, dict):
        raise _wrong_kind("a list of names or a mapping", value)
    for name in value:
        check_variable(name)
    return {
        name: None if text is None else _variable_text(name, text) for name, text in value.items()
    }


def check_variable(name: str) -> None:
    if not _VARIABLE.fullmatch(name):
        raise ValueError(f"{name!r} cannot name an environment variable")
    if name.startswith(RESERVED_PREFIX):
        raise ValueError(f"{name!r} is set by Eva itself; choose a name without {RESERVED_PREFIX}")


def _variable_text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    if not isinstance(value, (str, int, float)):
        raise _wrong_kind("text or a number", value, name)
    text = str(value)
    check_passable(text, f"{name} ")
    return text


def check_passable(text: str, what: str = "") -> None:
    """Whether a program can be given this in its arguments or its environment."""
    if "\0" in text:
        raise ValueError(f"{what}holds a NUL character")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{what}holds half of a character (a lone surrogate)") from None
    if size > _LONGEST_STRING:
        raise ValueError(
            f"{what}is {size:,} bytes long, and {_LONGEST_STRING:,} is the most that a program is "
            "started with: put it into a file"
        )


def signal_name(value: object) -> str:
    text = _as_text(value, "the name of a signal").upper().removeprefix("SIG")
    if text not in SIGNALS:
        raise ValueError(f"{value!r} is not one of the signals {', '.join(SIGNALS)}")
    return text


def progress_regex(value: object) -> str:
    text = _as_text(value, "a regular expression")
    if len(text) > _LONGEST_REGEX:
        raise ValueError(f"is longer than {_LONGEST_REGEX} characters")
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    if groups != 1:
        raise ValueError(f"{text!r} has {groups} groups; put parentheses around the step number")
    return text


def program(value: object) -> str | tuple[str, ...]:
    """A shell script as text, or a list of words that no shell sees."""
    if isinstance(value, list):
        words = tuple(_as_text(word, "a word of the command") for word in value)
        if not words:
            raise ValueError("is an empty list; write the program and its arguments")
        for word in words:
            check_passable(word)
        return words
    text = _as_text(value, "a script, or a list of words")
    if not text.strip():
        raise ValueError("is empty; write what to run")
    return text


def _kind_of(read: Callable[[object], Any], schema: dict[str, Any]) -> Any:
    return BeforeValidator(read), WithJsonSchema(schema)


_NUMBER_OR_TEXT = {"type": ["number", "string"]}
_VALUES = {"type": ["string", "number", "boolean", "null"]}

Duration = Annotated[
    int, *_kind_of(duration_ms, _NUMBER_OR_TEXT | {"format": "duration (90s, 15m, 2h, 1d)"})
]
Memory = Annotated[
    int, *_kind_of(memory_mib, _NUMBER_OR_TEXT | {"format": "memory (16GB, 512MB; a number is GB)"})
]
Cpus = Annotated[int, *_kind_of(cpu_millis, {"type": "number", "minimum": 0})]
Gpus = Annotated[int, *_kind_of(gpu_count, {"type": "integer", "minimum": 0})]
Rate = Annotated[float, *_kind_of(rate, {"type": "number", "exclusiveMinimum": 0})]
Name = Annotated[
    str, *_kind_of(job_name, {"type": "string", "pattern": f"^{_NAME.pattern}$", "maxLength": 63})
]
Image = Annotated[str, *_kind_of(image_reference, {"type": "string", "maxLength": _LONGEST_IMAGE})]
InnerPath = Annotated[
    str, *_kind_of(inner_path, {"type": "string", "format": "path inside the job's folder"})
]
Variables = Annotated[
    dict[str, str], *_kind_of(variables, {"type": "object", "additionalProperties": _VALUES})
]
SecretVariables = Annotated[
    dict[str, str | None],
    *_kind_of(
        secret_variables,
        {
            "type": ["array", "object"],
            "items": {"type": "string"},
            "additionalProperties": _VALUES,
        },
    ),
]
Signal = Annotated[str, *_kind_of(signal_name, {"type": "string", "enum": list(SIGNALS)})]
Regex = Annotated[
    str, *_kind_of(progress_regex, {"type": "string", "format": "regex with one group"})
]
Program = Annotated[
    str | tuple[str, ...],
    *_kind_of(program, {"type": ["string", "array"], "items": {"type": "string"}}),
]
