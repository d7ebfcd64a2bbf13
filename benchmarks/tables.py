"""Plain tables: what a benchmark measured, for people to read and for programs to compare."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

Cell = str | int | float | bool | None
Result = TypeVar("Result")


@dataclass
class Table:
    """Rows under one title. Figures keep their full precision here; printing rounds them."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]] = field(default_factory=list)

    def add(self, *cells: Cell) -> None:
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title}: {len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(cells)

    def as_dict(self) -> dict[str, object]:
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows}

    def __str__(self) -> str:
        texts = [self.columns, *(tuple(_show(cell) for cell in row) for row in self.rows)]
        widths = [max(len(row[i]) for row in texts) for i in range(len(self.columns))]
        lines = [
            "  ".join(
                cell.ljust(width) if index == 0 else cell.rjust(width)
                for index, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in texts
        ]
        rule = "-" * max(len(line) for line in lines)
        return "\n".join([self.title, rule, lines[0], rule, *lines[1:], ""])


def _show(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "NO"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:.5f}" if abs(cell) < 10 else f"{cell:,.1f}"
    return cell


def timed(action: Callable[[], Result], repeats: int = 1) -> tuple[Result, float]:
    """What `action` returns, and its shortest time in milliseconds over `repeats` runs.

    Processor time: everything measured runs in one thread, and so a busy machine counts less.
    """
    best = float("inf")
    for _ in range(repeats):
        gc.collect()
        started = time.process_time()
        result = action()
        best = min(best, (time.process_time() - started) * 1000)
    return result, best
