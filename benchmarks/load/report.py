"""The figures of a load as tables: what was seen, which promises were kept, what was lost."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence

from benchmarks.load.run import Figures
from benchmarks.tables import Table

P99_MS = 250.0
MASTER_BYTES = 1_500_000_000
_MIB = 1 << 20


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all is not above; NaN of nothing."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def tables(seen: Figures) -> list[Table]:
    return [_latency(seen), _seen(seen), _promises(seen), _losses(seen)]


def nothing_lost(seen: Figures) -> bool:
    return not any(row[1] for row in _losses(seen).rows)


def _latency(seen: Figures) -> Table:
    table = Table(
        "Latency in ms: from when it was due until it was answered",
        ("of", "count", "p50", "p95", "p99", "max"),
    )
    took = [answer.took_s for answer in seen.answers if answer.job]
    for name, values in (("submissions, durable", took), ("heartbeats", seen.beats_s)):
        shares = (percentile(values, share) * 1_000 for share in (0.5, 0.95, 0.99, 1.0))
        table.add(name, len(values), *(round(value, 1) for value in shares))
    return table


def _seen(seen: Figures) -> Table:
    table = Table("The master under load", ("what", "figure"))
    for row in (*_circumstances(seen), *_carried(seen), *_used(seen)):
        table.add(*row)
    return table


def _circumstances(seen: Figures) -> list[tuple[str, str]]:
    per_s = seen.filled / max(seen.fill_s, 1e-9)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    before, after = seen.machine_load
    return [
        ("machine", machine),
        ("load of the machine before, after", f"{before:.1f}, {after:.1f}"),
        ("measured for", f"{seen.measured_s:.1f} s, a round every {seen.scenario.round_s:g} s"),
        ("filled before", f"{seen.filled:,} jobs in {seen.fill_s:.1f} s ({per_s:.0f}/s)"),
        ("settled within", f"{seen.settle_s:.1f} s"),
        ("stopped within", f"{seen.stop_s:.1f} s"),
    ]


def _carried(seen: Figures) -> list[tuple[str, str]]:
    crowd = seen.crowd
    beats = f"{crowd['sent']:,}, {crowd['late']:,}, {crowd['missed']:,}"
    live = f"{seen.fewest_live:,}, of which running {seen.fewest_running:,}"
    return [
        ("submissions per second", f"{len(seen.answers) / seen.measured_s:.1f}"),
        ("workers connected, fewest", f"{crowd['fewest_connected']:,}"),
        ("live tasks, fewest", live),
        ("heartbeats sent, late, missed", beats),
        ("sessions broken", f"{crowd['broken_sessions']:,}"),
        ("heartbeat sent too late by, most", f"{crowd['worst_sending_s'] * 1_000:.0f} ms"),
    ]


def _used(seen: Figures) -> list[tuple[str, str]]:
    plans, failed = seen.aftermath.plans_s, seen.aftermath.plans_failed
    usual_s, longest_s = percentile(plans, 0.5), percentile(plans, 1.0)
    times = f"median {usual_s:.1f} s, longest {longest_s:.1f} s"
    return [
        ("memory of the master, peak", f"{seen.master.peak_bytes / _MIB:,.0f} MiB"),
        ("memory of its planner, peak", f"{seen.planner.peak_bytes / _MIB:,.0f} MiB"),
        ("CPU of the master", f"{seen.master_cpu_s / seen.measured_s:.0%} of a core"),
        ("CPU of its planner", f"{seen.planner_cpu_s / seen.measured_s:.0%} of a core"),
        ("plans, all told", f"{len(plans)}, {times}, {failed} failed"),
        ("records in the journal", f"{seen.aftermath.records:,}"),
    ]


def _promises(seen: Figures) -> Table:
    scenario, crowd = seen.scenario, seen.crowd
    table = Table("Promises", ("promise", "seen", "kept"))
    p99_ms = percentile([a.took_s for a in seen.answers if a.job], 0.99) * 1_000
    rate = len(seen.answers) / seen.measured_s
    table.add(f"p99 of submission under {P99_MS:.0f} ms", f"{p99_ms:.0f} ms", p99_ms < P99_MS)
    table.add(
        f"{scenario.rate:g} durable submissions a second",
        f"{rate:.1f}",
        rate >= 0.99 * scenario.rate,
    )
    peak = seen.master.peak_bytes
    table.add("memory under 1.5 GB", f"{peak / 1e9:.2f} GB", peak < MASTER_BYTES)
    unsound = crowd["missed"] + crowd["broken_sessions"]
    table.add("no heartbeat missed", f"{unsound}", unsound == 0)
    fewest = crowd["fewest_connected"]
    table.add(f"{scenario.workers:,} workers", f"{fewest:,}", fewest >= scenario.workers)
    live = seen.fewest_live
    table.add(f"{scenario.tasks:,} live tasks", f"{live:,}", live >= scenario.tasks)
    return table


def _losses(seen: Figures) -> Table:
    after = seen.aftermath
    table = Table("Lost, or done twice", ("what", "count", "such as"))
    for what, found in (
        ("submissions not accepted", seen.problems),
        ("accepted jobs that are not in the journal", after.lost),
        ("jobs in the journal that nobody was told of", after.strange),
        ("jobs under another key than their own", after.under_another_key),
        ("tasks that finished twice", after.twice),
        ("workers that broke", tuple(seen.crowd["failures"])),
    ):
        table.add(what, len(found), found[0] if found else None)
    missing = max(0, seen.told_exits - after.exits)
    table.add("ends acknowledged and not in the journal", missing, None)
    table.add("exit code of the master", seen.exit_code, None)
    return table
