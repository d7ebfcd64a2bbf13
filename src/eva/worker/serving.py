"""A worker from its join to its end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from pathlib import Path

from eva import __version__
from eva.adapters.grpc.dial import RefusedByMasterError
from eva.adapters.identity.bootstrap import Bootstrap
from eva.adapters.stores import open_storage
from eva.ports.runtime import TaskRuntime
from eva.worker.agent import Worker
from eva.worker.devices import Inventory
from eva.worker.identity import identify
from eva.worker.machine import DEFAULT_DEAD_MAN_MS
from eva.worker.settings import WorkerSettings

REFUSED_EXIT_CODE = 3  # the master will never have us: starting again is of no use
ASKED_EXIT_CODE = 128 + signal.SIGTERM  # tasks run on, and want a worker again


async def serve(
    bootstrap: Bootstrap,
    state: Path,
    address: str,
    inventory: Inventory,
    runtime: TaskRuntime,
    redial_ms: int,
    lease: Path | None = None,
) -> int:
    """The exit code: 0 when the instance has served its time."""
    clock = wall_clock_ms
    try:
        identity = await identify(state, bootstrap, clock, DEFAULT_DEAD_MAN_MS, redial_ms)
    except RefusedByMasterError as error:
        sys.stderr.write(f"eva worker: {error}\n")
        return REFUSED_EXIT_CODE
    storage = open_storage(bootstrap.storage or str(state / "storage"))
    await asyncio.to_thread(storage.check)
    settings = WorkerSettings(
        bootstrap, state, address, inventory, runtime, storage, clock, __version__, redial_ms, lease
    )
    working = asyncio.ensure_future(Worker(settings, identity).run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, working.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        reason = await working
        sys.stderr.write(f"eva worker: done here, {reason}\n")
        return 0
    return ASKED_EXIT_CODE


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000
