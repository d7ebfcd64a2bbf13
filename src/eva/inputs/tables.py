"""Rows of named cells, from CSV or from YAML, with the line of every cell.

People write the same table in either; everything above this file sees only rows. CSV may open with
`#` comment lines. YAML (and so JSON) is a list of mappings, or such a list under one key.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from eva.inputs.files import STDIN, read_bytes
from eva.inputs.guarded_yaml import Entries, Items, Node, Scalar, read_yaml
from eva.inputs.problems import Problems, did_you_mean

_LARGEST_FILE = 512 * 1024 * 1024
_YAML_START = re.compile(r"\s*(?:#[^\n]*\n\s*)*(?:---|%YAML|-\s|\[|\{|[A-Za-z_]+\s*:(?:\s|$))")


class Row(NamedTuple):
    """One row: its line, and the text of its cells without surrounding blanks; "" is empty."""

    line: int
    cells: Mapping[str, str]

    def text(self, column: str) -> str:
        return self.cells.get(column, "")


@dataclass(frozen=True, slots=True)
class Table:
    """`header_line` is where a complaint about a column belongs; 0 where there is no header."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    header_line: int


@dataclass(frozen=True, slots=True)
class Columns:
    """What a table may hold. `families` are the columns that may end in `.<family>`."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    list_key: str = "rows"  # the key of the list, where YAML has one

    @property
    def known(self) -> tuple[str, ...]:
        return (*self.required, *self.optional)


def read_table(path: str, columns: Columns) -> tuple[Table, Problems]:
    """The table in the file at `path` (`-`: standard input), its columns checked.

    Returns the collector too, so that complaints about columns and about cells come together.
    """
    text, problems = read_text(path)
    table = (
        _from_yaml(text, problems, columns) if _is_yaml(path, text) else parse_csv(text, problems)
    )
    check_columns(table, columns, problems)
    if not table.rows:
        raise problems.fail(0, "has no rows; nothing to do")
    return table, problems


def read_text(path: str) -> tuple[str, Problems]:
    """The text of a file, or of standard input, as UTF-8 with or without a byte order mark."""
    source = "<stdin>" if path == STDIN else path
    problems = Problems(source)
    raw = _read_bytes(path, problems)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"is not UTF-8 (byte 0x{raw[error.start]:02x}); save the file as UTF-8"
        raise problems.fail(line, message) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise problems.fail(line, "holds a zero byte; this is not a text file")
    if not text.strip():
        raise problems.fail(0, "is empty")
    return text, problems


def _read_bytes(path: str, problems: Problems) -> bytes:
    raw = read_bytes(path, _LARGEST_FILE + 1, problems.source)
    if len(raw) > _LARGEST_FILE:
        raise problems.fail(0, f"is larger than {_LARGEST_FILE // 2**20} MiB; split it")
    return raw


def check_columns(table: Table, columns: Columns, problems: Problems) -> None:
    """Complain about columns that are missing, unknown or there twice."""
    seen: set[str] = set()
    missing = [name for name in columns.required if name not in table.columns]
    for name in missing:
        problems.add(table.header_line, f"column {name!r} is missing")
    for name in table.columns:
        if name in seen:
            problems.add(table.header_line, f"column {name!r} is there twice")
            missing.append(name)  # nobody knows which of the two is meant
        seen.add(name)
        if not _is_known(name, columns):
            problems.add(table.header_line, _unknown_column(name, columns))
    problems.unreadable_columns = frozenset(missing)


def _is_known(name: str, columns: Columns) -> bool:
    base, dot, family = name.partition(".")
    return name in columns.known or bool(
        dot and base in columns.families and family and family != "any"
    )


def _unknown_column(name: str, columns: Columns) -> str:
    base, _, family = name.partition(".")
    if not name:
        return "a column has no name; name it, or remove the comma at the end of the lines"
    if base in columns.families and family == "any":
        return f"unknown column {name!r}; what holds on any family goes into {base!r}"
    hint = did_you_mean(name, columns.known) or did_you_mean(base, columns.known)
    known = ", ".join((*columns.known, *(f"{base}.<family>" for base in columns.families)))
    return f"unknown column {name!r}{hint} (known: {known})"


def _is_yaml(path: str, text: str) -> bool:
    suffix = Path(path).suffix.lower()
    if suffix in {".yaml", ".yml", ".json"}:
        return True
    return suffix not in {".csv", ".tsv", ".txt"} and _YAML_START.match(text) is not None


def parse_csv(text: str, problems: Problems) -> Table:
    """The table in CSV text; its columns are not checked yet."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: tuple[str, ...] = ()
    header_line = 0
    rows: list[Row] = []
    line = 1
    try:
        for cells in reader:
            start, line = line, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                if cells[0].lstrip().startswith("#"):
                    continue
                header, header_line = _header(cells, start, problems), start
                continue
            if len(cells) != len(header):
                problems.add(
                    start, f"has {len(cells)} cells, the header has {len(header)}{_why(cells)}"
                )
            if len(cells) <= len(header):  # of a longer row, nobody knows which cell is too many
                texts = map(str.strip, cells)
                rows.append(Row(start, dict(zip(header, texts, strict=False))))
    except csv.Error as error:
        raise problems.fail(reader.line_num, f"is not valid CSV: {error}") from None
    if not header:
        raise problems.fail(0, "has no header line")
    return Table(header, tuple(rows), header_line)


def _header(cells: list[str], line: int, problems: Problems) -> tuple[str, ...]:
    if len(cells) == 1:
        for character, name in ((";", "semicolons"), ("\t", "tabs")):
            if character in cells[0]:
                raise problems.fail(line, f"cells are separated by {name}; use commas")
    return tuple(cell.strip() for cell in cells)


def _why(cells: list[str]) -> str:
    digits = [cell.strip() if cell.strip().isdigit() else "" for cell in cells]
    if any(a and len(b) == 3 for a, b in pairwise(digits)):
        return " (write 1000, not 1,000)"
    return ""


def _from_yaml(text: str, problems: Problems, columns: Columns) -> Table:
    root = read_yaml(text, problems)
    names: dict[str, None] = {}
    rows: list[Row] = []
    for item in _list_of(root, columns, problems):
        if not isinstance(item, Entries):
            problems.add(item.line, "must be a mapping of column to value")
            continue
        cells: dict[str, str] = {}
        for key, value in item.pairs:
            names.setdefault(key.text)
            if isinstance(value, Scalar):
                cells[key.text] = "" if value.is_null else value.text.strip()
            else:
                problems.add(value.line, "must be a single value, not a list or mapping", key.text)
        rows.append(Row(item.line, cells))
    return Table(tuple(names), tuple(rows), 0)


def _list_of(root: Node, columns: Columns, problems: Problems) -> tuple[Node, ...]:
    if isinstance(root, Items):
        return root.nodes
    if isinstance(root, Entries):
        for key, value in root.pairs:
            if key.text != columns.list_key:
                hint = did_you_mean(key.text, [columns.list_key])
                problems.add(key.line, f"unknown key {key.text!r}{hint}")
            elif isinstance(value, Items):
                return value.nodes
    raise problems.fail(
        root.line, f"must be a list, or a mapping with a list under {columns.list_key!r}"
    )
