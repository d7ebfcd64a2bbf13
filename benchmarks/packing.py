"""Packing: how fast Algorithm 1 is, and how near the optimum everything comes.

    python -m benchmarks.packing [--json] [--quick]

Ratios are taken inside one run, so that they mean the same on any machine; absolute times are
printed beside them, with the machine named.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from benchmarks.quality import AT_200, AT_1000, cost_quality, net_value_quality
from benchmarks.scale import growth, scale
from benchmarks.tables import Table
from eva.inputs.catalogs import builtin


def machine() -> str:
    """Processor, cores and interpreter, as far as the system says."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def measure(*, quick: bool) -> Iterator[Table]:
    paper, physical = builtin("paper"), builtin("paper-physical")
    yield scale(paper, quick=quick)
    yield growth(paper, quick=quick)
    for catalog in (paper, physical):
        yield cost_quality(catalog, 200, AT_200, quick=quick)
        yield cost_quality(catalog, 1_000, AT_1000, quick=quick)
        yield cost_quality(catalog, 5_000, AT_1000, quick=quick)
    for catalog in (paper, physical):
        yield net_value_quality(catalog, quick=quick)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packing", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument("--quick", action="store_true", help="fewer draws and smaller sizes")
    arguments = parser.parse_args()
    if not arguments.json:
        print(machine(), end="\n\n")
        for table in measure(quick=arguments.quick):
            print(table, flush=True)
        return
    tables = [table.as_dict() for table in measure(quick=arguments.quick)]
    print(json.dumps({"machine": machine(), "tables": tables}, indent=2))


if __name__ == "__main__":
    main()
