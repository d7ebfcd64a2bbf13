"""A worker that is killed without a word: `worker_that_dies.py WHEN RUNTIME STATE CLUSTER IMAGE`.

`after` starting two tasks, it kills itself: one runs on, the other ends, with code 7, when nobody
is there to see it. `whenever` it is killed from outside, in the middle of starting one task after
the other, each of which adds a line to a file of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from pathlib import Path

from eva.model.ids import InstanceId
from eva.ports.runtime import Home, Mount, Script, TaskRuntime
from tests.contract.runtime.bench import Bench, docker_bench, process_bench

ENDS = Script("sleep 0.5; exit 7")
LEAVES_A_MARK = Script('echo ran >>"$MARKS/$NUMBER"; exit 3')


async def start_two(bench: Bench, runtime: TaskRuntime) -> None:
    await runtime.start(await bench.launch(runtime, "waits", bench.ref("runs.0")))
    await runtime.start(await bench.launch(runtime, ENDS, bench.ref("ends.0")))
    os.kill(os.getpid(), signal.SIGKILL)


async def start_many(bench: Bench, runtime: TaskRuntime, marks: Path) -> None:
    mounts = (Mount(marks, "/marks", variable="MARKS"),)
    for number in itertools.count():
        ref = bench.ref(f"{os.getpid()}-{number}.0")
        env = {"NUMBER": ref.task}
        await runtime.start(await bench.launch(runtime, LEAVES_A_MARK, ref, mounts=mounts, env=env))
        sys.stdout.write(f"{ref.task}\n")
        sys.stdout.flush()


async def main(when: str, kind: str, state: Path, cluster: str, image: str) -> None:
    home = Home(cluster, InstanceId("i-1"))
    bench = process_bench(home, state) if kind == "process" else docker_bench(home, state, image)
    runtime = bench.open()
    if when == "after":
        await start_two(bench, runtime)
    await start_many(bench, runtime, state / "marks")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4], sys.argv[5]))
