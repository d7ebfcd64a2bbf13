"""One load from an empty folder to figures: start, fill, settle, measure, stop, look back."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load.afterwards import Aftermath, read_aftermath
from benchmarks.load.processes import Started
from benchmarks.load.scenario import Scenario
from benchmarks.load.submitting import Answer, Submitter
from benchmarks.load.watching import Usage, of_children, usage
from benchmarks.load.wire import Line, Said
from eva.cli.serving import is_answering
from eva.master.client import Connection

_START_WITHIN_S = 60.0
_SETTLE_WITHIN_S = 120.0
_STOP_WITHIN_S = 60.0
_LOOK_EVERY_S = 1.0
_SURPLUS = 1.02  # filled a little above, for tasks end while it is being filled
_NEARLY = 0.97  # of the tasks run, and the rest waits for the next round


@dataclass(frozen=True)
class Figures:
    """Everything that was seen. Times are seconds; `answers` are those of the measured time."""

    scenario: Scenario
    machine_load: tuple[float, float]  # of the machine, before and after
    fill_s: float
    filled: int
    settle_s: float
    measured_s: float
    answers: tuple[Answer, ...]
    problems: tuple[str, ...]
    fewest_live: int
    fewest_running: int
    crowd: Said
    beats_s: tuple[float, ...]
    master: Usage
    planner: Usage
    master_cpu_s: float
    planner_cpu_s: float
    stop_s: float
    exit_code: int
    told_exits: int  # that the master has acknowledged
    aftermath: Aftermath


async def run(scenario: Scenario) -> Figures:
    """Everything is in a folder of its own, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="eva-load-") as folder:
        home = Path(folder)
        catalog = home / "catalog.csv"
        catalog.write_text(scenario.catalog())
        socket = home / "crowd.sock"
        crowd = Started(
            "benchmarks.load.crowd",
            home / "crowd.log",
            socket=socket,
            heartbeat=scenario.heartbeat_s,
            boot=scenario.boot_s,
            seed=scenario.seed,
        )
        try:
            await crowd.until(socket.exists, _START_WITHIN_S)
            master = Started(
                "benchmarks.load.master",
                home / "master.log",
                home=home,
                crowd=socket,
                catalog=catalog,
                round=scenario.round_s,
                heartbeat=scenario.heartbeat_s,
            )
            try:
                await master.until(lambda: is_answering(home, master.pid), _START_WITHIN_S)
                return await _Load(scenario, home, master, crowd).measure(Line(socket))
            finally:
                master.kill()
        finally:
            crowd.kill()


class _Load:
    def __init__(self, scenario: Scenario, home: Path, master: Started, crowd: Started) -> None:
        self._scenario = scenario
        self._home = home
        self._master = master
        self._crowd = crowd
        self._began_s = time.monotonic()
        self._fewest_live = self._fewest_running = sys.maxsize
        self._submitter = Submitter(Connection.read(home), scenario.job_file)

    async def measure(self, line: Line) -> Figures:
        scenario, submitter, before = self._scenario, self._submitter, os.getloadavg()[0]
        fill_s = await self._fill(line)
        filled = len(submitter.answers)
        end = asyncio.Event()
        streaming = asyncio.create_task(submitter.stream(scenario.rate, end))
        try:
            settle_s = await self._settle(line)
            from_s, cpu = time.monotonic(), self._cpu_s()
            await line.ask(do="begin")
            await self._watch(line, from_s + scenario.seconds)
            to_s = time.monotonic()
            await line.ask(do="end")
            crowd = await line.ask(do="figures")
            beats = await line.ask(do="answers")
            cpu_s = [now - then for now, then in zip(self._cpu_s(), cpu, strict=True)]
        finally:
            end.set()
            await streaming
        self._say("measured; stopping the master")
        of_master, of_planner = usage(self._master.pid), of_children(self._master.pid)
        stopping_s = time.monotonic()
        code = await self._master.stop(_STOP_WITHIN_S)
        stop_s = time.monotonic() - stopping_s
        last = await line.ask(do="figures")
        await line.close()
        await submitter.close()
        self._say("reading the journal")
        aftermath = await asyncio.to_thread(read_aftermath, self._home, submitter.answers)
        return Figures(
            scenario=scenario,
            machine_load=(before, os.getloadavg()[0]),
            fill_s=fill_s,
            filled=filled,
            settle_s=settle_s,
            measured_s=to_s - from_s,
            answers=tuple(a for a in submitter.answers if from_s <= a.due_s < to_s),
            problems=tuple(a.problem for a in submitter.answers if a.problem),
            fewest_live=self._fewest_live,
            fewest_running=self._fewest_running,
            crowd=crowd,
            beats_s=tuple(beats["took_s"]),
            master=of_master,
            planner=of_planner,
            master_cpu_s=cpu_s[0],
            planner_cpu_s=cpu_s[1],
            stop_s=stop_s,
            exit_code=code,
            told_exits=last["told"].get("Exited", 0) - last["unacknowledged_exits"],
            aftermath=aftermath,
        )

    def _cpu_s(self) -> tuple[float, float]:
        return usage(self._master.pid).cpu_s, of_children(self._master.pid).cpu_s

    async def _fill(self, line: Line) -> float:
        wanted = round(self._scenario.tasks * _SURPLUS)
        self._say(f"filling the cluster with {wanted:,} tasks")
        began_s = time.monotonic()
        while (missing := wanted - await self._live(line)) > 0:
            await self._submitter.burst(missing)
            self._check()
        return time.monotonic() - began_s

    async def _live(self, line: Line) -> int:
        accepted = sum(1 for answer in self._submitter.answers if answer.job)
        ended: int = (await line.ask(do="figures"))["told"].get("Exited", 0)
        return accepted - ended

    async def _settle(self, line: Line) -> float:
        """Until the workers are there and run nearly everything."""
        scenario, began_s = self._scenario, time.monotonic()
        self._say("filled; waiting until the tasks run")
        while time.monotonic() - began_s < _SETTLE_WITHIN_S:
            self._check()
            seen = await line.ask(do="figures")
            enough = seen["tasks"] >= _NEARLY * scenario.tasks
            if enough and seen["connected"] >= scenario.workers:
                break
            await asyncio.sleep(_LOOK_EVERY_S)
        self._say(f"{seen['tasks']:,} tasks run on {seen['connected']:,} workers; measuring")
        return time.monotonic() - began_s

    async def _watch(self, line: Line, until_s: float) -> None:
        while (left_s := until_s - time.monotonic()) > 0:
            self._check()
            seen = await line.ask(do="figures")
            self._fewest_running = min(self._fewest_running, seen["tasks"])
            self._fewest_live = min(self._fewest_live, await self._live(line))
            await asyncio.sleep(min(_LOOK_EVERY_S, left_s))

    def _check(self) -> None:
        self._master.check()
        self._crowd.check()

    def _say(self, what: str) -> None:
        print(f"{time.monotonic() - self._began_s:6.1f} s  {what}", file=sys.stderr, flush=True)
