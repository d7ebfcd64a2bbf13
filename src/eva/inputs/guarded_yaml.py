"""YAML as a tree of text with line numbers, safe to read from strangers.

PyYAML's usual loaders build objects first and forget the lines; they turn `no` into false and
`1:30` into 90, let the second of two equal keys win, and expand a kilobyte of aliases into
gigabytes. Here the events of the parser are counted against limits before anything is built, the
tree keeps every scalar as the text that was written, and duplicate keys, tags, merge keys and
further documents are refused by line.

`plain` turns a tree into dicts, lists, text, numbers and booleans by the rules of YAML 1.2, for
readers that want no more than that; `line_of` answers where in the file a path of it stands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml

from eva.inputs.problems import Problems

Plain = dict[str, "Plain"] | list["Plain"] | str | int | float | bool | None
Path = Sequence[str | int]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LONGEST_NUMBER = 100


@dataclass(frozen=True, slots=True)
class Limits:
    """What a file may ask of its reader. Real files stay far below."""

    characters: int = 64 * 1024 * 1024
    depth: int = 32
    aliases: int = 100
    nodes: int = 5_000_000  # counted after aliases are expanded


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf as written. `quoted` text is always text; other text may also be a number or null."""

    text: str
    quoted: bool
    line: int

    @property
    def is_null(self) -> bool:
        return not self.quoted and self.text in _NULLS


@dataclass(frozen=True, slots=True)
class Items:
    nodes: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Entries:
    pairs: tuple[tuple[Scalar, Node], ...]
    line: int

    def get(self, key: str) -> Node | None:
        return next((value for name, value in self.pairs if name.text == key), None)


Node = Scalar | Items | Entries


def read_yaml(text: str, problems: Problems, limits: Limits | None = None) -> Node:
    """The one document of `text`; raises InputError with everything found so far."""
    limits = limits or Limits()
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise problems.fail(line, "holds half of a character (a lone surrogate)") from None
    if len(text) > limits.characters:
        raise problems.fail(0, f"is larger than {limits.characters:,} characters; split it")
    try:
        _check_events(text, problems, limits)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        raise problems.fail(line, f"is not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise problems.fail(0, f"is not valid YAML: {error}") from None
    if root is None:
        raise problems.fail(0, "is empty")
    tree = _Builder(problems, limits).build(root)
    problems.raise_if_any()
    return tree


def plain(node: Node, problems: Problems) -> Plain:
    """Dicts, lists and values by YAML 1.2; numbers that are not finite are complained about."""
    if isinstance(node, Entries):
        return {key.text: plain(value, problems) for key, value in node.pairs}
    if isinstance(node, Items):
        return [plain(item, problems) for item in node.nodes]
    return _plain_scalar(node, problems)


def line_of(node: Node, path: Path) -> int:
    """The line of the deepest node along `path` that exists: where a complaint belongs."""
    for step in path:
        following = _child(node, step)
        if following is None:
            return node.line
        node = following
    return node.line


def _child(node: Node, step: str | int) -> Node | None:
    if isinstance(node, Entries):
        return node.get(str(step))
    if isinstance(node, Items) and isinstance(step, int) and 0 <= step < len(node.nodes):
        return node.nodes[step]
    return None


def _plain_scalar(node: Scalar, problems: Problems) -> Plain:
    text = node.text
    if node.quoted:
        return text
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _NOT_FINITE.fullmatch(text):
        problems.add(node.line, f"{text} is not a finite number")
        return None
    if not _FLOAT.fullmatch(text):
        return text
    if len(text) > _LONGEST_NUMBER:
        problems.add(node.line, f"{text[:20]}... is not a sensible number; quote it if it is text")
        return None
    if _INT.fullmatch(text):
        return int(text)
    value = float(text)
    if not math.isfinite(value):
        problems.add(node.line, f"{text} is too large a number")
        return None
    return value + 0.0  # -0.0 becomes 0.0


def _check_events(text: str, problems: Problems, limits: Limits) -> None:
    """Count nesting, aliases and documents before a recursive reader sees the file."""
    depth = aliases = documents = 0
    for event in _events(text):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > limits.depth:
                raise problems.fail(line, f"nests deeper than {limits.depth} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            aliases += 1
            if aliases > limits.aliases:
                raise problems.fail(line, f"uses more than {limits.aliases} aliases (`*name`)")
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise problems.fail(line, "starts a second document (`---`); only one is read")


def _events(text: str) -> Iterator[Any]:
    yield from yaml.parse(text, Loader=_LOADER)


class _Builder:
    """From PyYAML's nodes to ours, with aliases expanded against a budget of nodes."""

    def __init__(self, problems: Problems, limits: Limits) -> None:
        self._problems = problems
        self._limits = limits
        self._nodes = 0

    def build(self, node: yaml.Node, depth: int = 1) -> Node:
        line = node.start_mark.line + 1
        self._count(line, depth)
        if isinstance(node, yaml.ScalarNode):
            self._check_tag(node, line)
            return Scalar(node.value, bool(node.style), line)  # plain: None, or "" from libyaml
        self._check_tag(node, line)
        if isinstance(node, yaml.SequenceNode):
            return Items(tuple(self.build(item, depth + 1) for item in node.value), line)
        return self._entries(node, line, depth)

    def _entries(self, node: yaml.Node, line: int, depth: int) -> Entries:
        pairs: dict[str, tuple[Scalar, Node]] = {}
        for key_node, value_node in node.value:
            key = self.build(key_node, depth + 1)
            if not isinstance(key, Scalar):
                self._problems.add(key.line, "a key must be a word, not a list or a mapping")
                continue
            if key.text == "<<" and not key.quoted:
                self._problems.add(key.line, "merge keys (`<<`) are not read; write the keys out")
            elif key.text in pairs:
                first = pairs[key.text][0].line
                self._problems.add(key.line, f"is here twice (first on line {first})", key.text)
            else:
                pairs[key.text] = (key, self.build(value_node, depth + 1))
        return Entries(tuple(pairs.values()), line)

    def _count(self, line: int, depth: int) -> None:
        self._nodes += 1
        if self._nodes > self._limits.nodes:
            self._refuse(line, f"expands to more than {self._limits.nodes:,} values")
        if depth > self._limits.depth:  # an alias to something that holds the alias
            self._refuse(line, f"nests deeper than {self._limits.depth} levels")

    def _check_tag(self, node: yaml.Node, line: int) -> None:
        tag = str(node.tag)
        if tag.startswith("tag:yaml.org,2002:") and "python" not in tag:
            return
        self._problems.add(line, f"tag {tag} is not read; remove it")

    def _refuse(self, line: int, message: str) -> NoReturn:
        raise self._problems.fail(line, message)
