"""The process with the master: what `eva serve` runs, renting from the crowd."""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import replace
from pathlib import Path

from benchmarks.load.cloud import CrowdCloud
from eva.adapters.identity.authority import Authority
from eva.master.clock import wall_ms
from eva.master.clouds import surroundings
from eva.master.options import ServeOptions
from eva.master.server import serve
from eva.master.service import Surroundings
from eva.ports.journal import Journal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--crowd", type=Path, required=True, help="the socket of the crowd")
    parser.add_argument("--catalog", required=True)
    parser.add_argument("--round", type=float, required=True)
    parser.add_argument("--heartbeat", type=float, required=True)
    given = parser.parse_args()
    options = ServeOptions(
        given.home,
        port=0,
        catalog=given.catalog,
        round_s=given.round,
        heartbeat_s=given.heartbeat,
    )

    def with_crowd(options: ServeOptions, journal: Journal, authority: Authority) -> Surroundings:
        usual = surroundings(options, journal, authority)
        return replace(usual, cloud=CrowdCloud(wall_ms, given.crowd))

    asyncio.run(serve(options, with_crowd))


if __name__ == "__main__":
    main()
