"""The process with the workers: one event loop, as many of them as are asked for.

It is told over a socket (`wire`) whom to begin and to end, by the master's cloud, and when to
count, by who measures.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import logging
import random
import resource
import signal
from collections import Counter
from pathlib import Path

import structlog

from benchmarks.load.heartbeats import Heartbeats
from benchmarks.load.light_worker import LightWorker
from benchmarks.load.pretended import Shelf
from benchmarks.load.wire import Said, decode, encode
from eva.adapters.identity.bootstrap import decode_bootstrap
from eva.model.ids import InstanceId
from eva.model.resources import Resources
from eva.ports.workers import Exited


class Crowd:
    def __init__(self, interval_s: float, boot_s: float, seed: int) -> None:
        self._beats = Heartbeats(interval_s)
        self._boot_s = boot_s
        self._draw = random.Random(seed)
        self._shelf: Shelf = {}
        self._told: Counter[str] = Counter()
        self._workers: dict[InstanceId, tuple[LightWorker, asyncio.Task[None]]] = {}
        self._broken: list[str] = []

    async def answer(self, said: Said) -> Said:
        match said["do"]:
            case "launch":
                self._launch(said)
            case "terminate":
                await self._terminate(InstanceId(said["instance"]))
            case "begin":
                self._beats.begin()
            case "end":
                self._beats.end()
            case "figures":
                return self._figures()
            case "answers":
                return {"took_s": self._beats.answers_s}
        return {}

    def _launch(self, said: Said) -> None:
        bootstrap = decode_bootstrap(said["bootstrap"])
        if bootstrap.instance in self._workers:
            return
        capacity = Resources(*said["capacity"])
        worker = LightWorker(bootstrap, capacity, self._shelf, self._beats, self._told)
        running = asyncio.create_task(worker.run(self._draw.uniform(0, self._boot_s)))
        running.add_done_callback(self._over)
        self._workers[bootstrap.instance] = (worker, running)

    def _over(self, running: asyncio.Task[None]) -> None:
        error = None if running.cancelled() else running.exception()
        if error is not None:
            self._broken.append(repr(error))

    async def _terminate(self, instance: InstanceId) -> None:
        found = self._workers.pop(instance, None)
        if found is not None:
            worker, running = found
            worker.leave()
            running.cancel()
            await asyncio.wait({running})

    async def close(self) -> None:
        for instance in tuple(self._workers):
            await self._terminate(instance)

    def _figures(self) -> Said:
        beats = self._beats
        return {
            "workers": len(self._workers),
            "connected": beats.connected,
            "fewest_connected": beats.fewest_connected,
            "tasks": sum(len(worker.tasks) for worker, _ in self._workers.values()),
            "sent": beats.sent,
            "answered": beats.answered,
            "late": beats.late,
            "missed": beats.missed,
            "broken_sessions": beats.broken,
            "worst_sending_s": beats.worst_sending_s,
            "told": dict(self._told),
            "unacknowledged_exits": sum(
                w.unacknowledged(Exited) for w, _ in self._workers.values()
            ),
            "failures": self._broken[:5],
        }


async def serve(crowd: Crowd, socket: Path) -> None:
    """Until a signal."""
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            while line := await reader.readline():
                writer.write(encode(await crowd.answer(decode(line))))
                await writer.drain()

    server = await asyncio.start_unix_server(talk, socket)
    await end.wait()
    server.close()
    await crowd.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--heartbeat", type=float, required=True)
    parser.add_argument("--boot", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    gc.set_threshold(100_000, 20, 100)  # the load should not stumble over its own garbage
    asyncio.run(serve(Crowd(given.heartbeat, given.boot, given.seed), given.socket))


if __name__ == "__main__":
    main()
