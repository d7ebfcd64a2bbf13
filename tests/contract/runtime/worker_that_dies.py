"""Starts two tasks and is killed without a word: `worker_that_dies.py RUNTIME STATE CLUSTER IMAGE`.

One task runs on; the other ends, with code 7, when nobody is there to see it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from eva.model.ids import InstanceId
from eva.ports.runtime import Home, Script
from tests.contract.runtime.bench import docker_bench, process_bench

ENDS = Script("sleep 0.5; exit 7")


async def main(kind: str, state: Path, cluster: str, image: str) -> None:
    home = Home(cluster, InstanceId("i-1"))
    bench = process_bench(home, state) if kind == "process" else docker_bench(home, state, image)
    runtime = bench.open()
    await runtime.start(await bench.launch(runtime, "waits", bench.ref("runs.0")))
    await runtime.start(await bench.launch(runtime, ENDS, bench.ref("ends.0")))
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]))
