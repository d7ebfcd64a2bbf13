"""Algorithm 1 against the number of tasks and classes: the core, and the expansion to ids."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.draws import evenly, packer_for, ten_workloads
from benchmarks.tables import Table, timed
from eva.model.catalog import Catalog
from eva.scheduling.expansion import expand
from eva.scheduling.packing import Packer, pack

COLUMNS = (
    "tasks",
    "classes",
    "patterns",
    "instances",
    "pack ms",
    "expand ms",
    "both ms",
    "target ms",
    "met",
)


@dataclass(frozen=True, slots=True)
class Size:
    tasks: int
    classes: int
    target_ms: float | None = None


SIZES = (
    Size(8_000, 10, 20),
    Size(8_000, 100, 50),
    Size(8_000, 8_000, 500),
    Size(1_000_000, 10, 2_000),
)
QUICK_SIZES = (Size(1_000, 10), Size(8_000, 10, 20), Size(2_000, 2_000))
GROWTH = (1_000, 10_000, 100_000, 1_000_000)


def scale(catalog: Catalog, *, quick: bool) -> Table:
    table = Table(f"Algorithm 1 by size (catalog {catalog.name})", COLUMNS)
    for size in QUICK_SIZES if quick else SIZES:
        classes, patterns, instances, packing, expansion = _measure(catalog, size)
        both = packing + expansion
        met = None if size.target_ms is None else both <= size.target_ms
        table.add(
            size.tasks,
            classes,
            patterns,
            instances,
            packing,
            expansion,
            both,
            size.target_ms,
            met,
        )
    return table


def growth(catalog: Catalog, *, quick: bool) -> Table:
    """Time per class and pattern must not grow with the tasks; the expansion per task neither."""
    table = Table(
        f"Growth with the tasks, ten classes (catalog {catalog.name})",
        ("tasks", "pack ms", "us / (class x pattern)", "expand ms", "us / task", "pack, of first"),
    )
    first = 0.0
    for count in GROWTH[:2] if quick else GROWTH:
        classes, patterns, _, packing, expansion = _measure(catalog, Size(count, 10))
        first = first or packing
        table.add(
            count,
            packing,
            packing * 1000 / (classes * patterns),
            expansion,
            expansion * 1000 / count,
            packing / first,
        )
    return table


def _measure(catalog: Catalog, size: Size) -> tuple[int, int, int, float, float]:
    drawn = (
        ten_workloads(size.tasks, seed=0)
        if size.classes == 10
        else evenly(size.tasks, size.classes, seed=0)
    )
    packer, stock = packer_for(drawn, catalog)
    repeats = 1 if size.tasks * size.classes > 1_000_000 else 3

    def packing() -> list[object]:  # a fresh packer: nothing is remembered between runs
        fresh = Packer(packer.classes, packer.table, packer.valuation)
        return list(pack(fresh, catalog, stock))

    _, packing_ms = timed(packing, repeats)
    patterns = pack(packer, catalog, stock)
    placing = [group.tasks for group in packer.classes]
    planned, expansion_ms = timed(lambda: expand(patterns, packer.classes, placing, ()), repeats)
    return len(packer.classes), len(patterns), len(planned), packing_ms, expansion_ms
