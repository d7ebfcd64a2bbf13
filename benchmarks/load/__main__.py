"""`python -m benchmarks.load [--workers N] [--tasks N] [--rate N] [--seconds N] [--json]`"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys

from benchmarks.load.report import nothing_lost, tables
from benchmarks.load.run import Figures, run
from benchmarks.load.scenario import Scenario

_INTERRUPTED = 130


async def _until_signal(scenario: Scenario) -> Figures:
    """A signal ends it as Ctrl-C does: tidily."""
    working = asyncio.ensure_future(run(scenario))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, working.cancel)
    return await working


def main() -> int:
    usual = Scenario()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    add = parser.add_argument
    add("--workers", type=int, default=usual.workers, help="gRPC clients with heartbeats")
    add("--tasks", type=int, default=usual.tasks, help="live at any time")
    add("--rate", type=float, default=usual.rate, help="submissions per second")
    add("--seconds", type=float, default=usual.seconds, help="how long to measure")
    add("--round", type=float, default=usual.round_s, help="seconds between scheduling rounds")
    add("--heartbeat", type=float, default=usual.heartbeat_s, help="seconds between heartbeats")
    add("--seed", type=int, default=usual.seed, help="of jobs and boot times")
    add("--json", action="store_true", help="print the tables as JSON")
    given = parser.parse_args()
    scenario = Scenario(
        given.workers, given.tasks, given.rate, given.seconds, given.round, given.heartbeat,
        seed=given.seed,
    )  # fmt: skip
    try:
        seen = asyncio.run(_until_signal(scenario))
    except (asyncio.CancelledError, KeyboardInterrupt):
        return _INTERRUPTED
    if given.json:
        print(json.dumps([table.as_dict() for table in tables(seen)], indent=2))
    else:
        for table in tables(seen):
            print(table)
    return 0 if nothing_lost(seen) else 1


if __name__ == "__main__":
    sys.exit(main())
