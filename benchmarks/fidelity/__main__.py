"""`python -m benchmarks.fidelity [--quick] [--policy NAME] [--keep FOLDER]`"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.fidelity.comparison import POLICIES, Comparison, compare, tables
from benchmarks.fidelity.scenario import FULL, QUICK


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="8 short jobs, a wider tolerance")
    parser.add_argument("--policy", action="append", help="instead of No-Packing and Eva")
    parser.add_argument("--scale", type=float, help="seconds of the trace in one second here")
    parser.add_argument("--seed", type=int, help="of the trace")
    parser.add_argument("--keep", type=Path, help="keep journals, logs and diaries in this folder")
    given = parser.parse_args()
    chosen = QUICK if given.quick else FULL
    scenario = replace(
        chosen,
        seed=chosen.seed if given.seed is None else given.seed,
        scale=chosen.scale if given.scale is None else given.scale,
    )
    trace = scenario.trace
    last_h = trace.jobs[-1].arrival_ms / 3_600_000
    print(
        f"{len(trace)} jobs, {trace.tasks} tasks, arriving over {last_h:.1f} h, catalog "
        f"{scenario.catalog_name}, seed {scenario.seed}. One second here is {scenario.scale:g} "
        f"seconds of the trace; a round every {scenario.round_ms / 1_000:g} s.\n",
        flush=True,
    )
    done = []
    for policy in given.policy or POLICIES:
        print(f"{policy}: running live ...", flush=True)
        home = None if given.keep is None else given.keep / policy
        done.append(compare(scenario, policy, home))
    print()
    for table in tables(done):
        print(table)
    verdicts = [_verdict(each) for each in done]
    return 0 if all(verdicts) else 1


def _verdict(each: Comparison) -> bool:
    limit = each.scenario.tolerance
    if each.story.failures:
        print(f"{each.live.policy}: {len(each.story.failures)} failures: {each.story.failures[:3]}")
    if each.unfinished:
        print(f"NOT SO: every job finishes under {each.live.policy}; not {each.unfinished}")
    word = "ok" if abs(each.difference) <= limit else "NOT SO"
    print(
        f"{word}: under {each.live.policy} the simulated bill is within {limit:.0%} of the live "
        f"one ({each.difference:+.2%})"
    )
    return each.ok


if __name__ == "__main__":
    sys.exit(main())
