"""A small master in a bad world: replies get lost, calls are refused, and it is killed anywhere.

It keeps a journal that survives, as the real one does: an intent is written down before it is asked
for, and forgotten when it was refused or when EC2 says that its instance is gone. What is checked
is what the account looks like, at all times and after five good minutes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from eva.adapters.aws import AwsCloud
from eva.adapters.aws.book import Attempt, AttemptBook
from eva.model.errors import EvaError, TryAgainError
from eva.model.ids import InstanceId
from eva.ports.cloud import CloudState, LaunchIntent
from tests.support.cloud_proxy import LOST_REPLY, LOST_REQUEST, THROTTLED, Fault, refusal
from tests.unit.adapters.aws.harness import BIG, BIGGER, ZONES, Bench

_FAULTS = (LOST_REPLY, LOST_REQUEST, THROTTLED, refusal("InternalError", 500))
_REFUSALS = ("InsufficientInstanceCapacity", "VcpuLimitExceeded", "Unsupported")


class Killed(BaseException):
    """`kill -9`: nothing in the adapter may catch it."""


@dataclass
class Fuse:
    """Kills at the n-th point from now, and everything after that until the next start."""

    points_left: int | None = None

    def point(self) -> None:
        if self.points_left is None:
            return
        if self.points_left == 0:
            raise Killed
        self.points_left -= 1


@dataclass
class FusedClient:
    """A client that may be killed before a call, and after its effect but before its reply."""

    client: Any
    fuse: Fuse

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def call(**asked: object) -> Any:
            self.fuse.point()
            reply = getattr(self.client, operation)(**asked)
            self.fuse.point()
            return reply

        return call

    def close(self) -> None:
        """The real one is shared."""


def fuse_the_book(monkeypatch: pytest.MonkeyPatch, fuse: Fuse) -> None:
    """Writing into the book may be the last thing that is done, or not be done any more."""
    write = AttemptBook._write

    def fused(book: AttemptBook, attempt: Attempt) -> Attempt:
        fuse.point()
        written = write(book, attempt)
        fuse.point()
        return written

    monkeypatch.setattr(AttemptBook, "_write", fused)


@dataclass
class SmallMaster:
    bench: Bench
    fuse: Fuse
    chance: random.Random
    folder: Path
    cloud: AwsCloud = field(init=False)
    wanted: dict[InstanceId, bool] = field(default_factory=dict)  # the journal: True is up
    launched: set[InstanceId] = field(default_factory=set)
    lost: list[InstanceId] = field(default_factory=list)
    missing_since: dict[InstanceId, int] = field(default_factory=dict)
    starts: int = 0
    kills: int = 0
    books: int = 0

    def __post_init__(self) -> None:
        self.start(new_cluster=True)

    # Being killed and started again

    def start(self, *, new_cluster: bool = False) -> None:
        self.fuse.points_left = None
        if self.chance.random() < 0.1:
            self.books += 1  # the disk was lost
        self.starts += 1
        folder = self.folder / f"disk-{self.books}"
        self.cloud = self.bench.open(new_cluster=new_cluster, folder=folder)
        self.launched.clear()  # in memory only
        self.missing_since.clear()

    async def guarded(self, *work: Any) -> None:
        """Some things at once. Errors that the port promises are waited out; a kill is a kill."""
        ends = await asyncio.gather(*work, return_exceptions=True)
        for end in ends:
            if end is not None and not isinstance(end, (TryAgainError, Killed)):
                raise end
        if any(isinstance(end, Killed) for end in ends):
            self.kills += 1
            await self.cloud.close()
            self.bench.opened.remove(self.cloud)
            self.start()

    # What it does

    async def launch(self, name: InstanceId) -> None:
        # A new token every time, as the real master would issue one.
        bootstrap = f"eva1.{self.chance.randrange(3)}"
        intent = LaunchIntent(name, BIG, bootstrap, alternatives=(BIGGER,))
        try:
            await self.cloud.launch(intent)
            self.launched.add(name)
        except TryAgainError:
            raise
        except EvaError:
            self.wanted.pop(name, None)  # refused

    async def end(self, name: InstanceId) -> None:
        await self.cloud.terminate(name)

    async def compare(self) -> None:
        listed = {shown.instance: shown.state for shown in await self.cloud.list()}
        for name, up in tuple(self.wanted.items()):
            if name in listed:
                self.missing_since.pop(name, None)
            elif not up:
                since_ms = self.missing_since.setdefault(name, self.bench.clock())
                if self.bench.clock() - since_ms >= self.bench.settings.settle_ms:
                    self.wanted.pop(name)
                    continue
            if listed.get(name) is CloudState.TERMINATED:
                self.wanted.pop(name)
                if up:
                    self.lost.append(name)  # nobody here asked for that

    async def reap(self) -> None:
        await self.cloud.reap(lambda: set(self.wanted))

    def everything(self) -> list[Any]:
        work: list[Any] = []
        for name, up in self.wanted.items():
            if not up:
                work.append(self.end(name))
            elif name not in self.launched:
                work.append(self.launch(name))
        return work


class Chaos:
    """One seed: a bad time, then a good one.

    Things that are asked at once race, as they do in life: a seed fixes the world, not every order.
    """

    def __init__(self, seed: int, bench: Bench, folder: Path, fuse: Fuse) -> None:
        self.chance = random.Random(seed)
        self.bench = bench
        self.proxy = bench.proxy
        bench.client = FusedClient(bench.client, fuse)
        script = self.proxy.script
        script.visible_after_ms = self.chance.choice([0, 5_000, 40_000])
        script.terminated_after_ms = self.chance.choice([0, 30_000])
        script.running_after_ms = self.chance.choice([0, 20_000])
        self.fault_rate = self.chance.choice([0.05, 0.2, 0.4])
        self.faults = random.Random(seed + 1)
        self.master = SmallMaster(bench, fuse, self.chance, folder)
        self.fuse = fuse
        self.named = 0
        self.called_off: set[InstanceId] = set()

    def fault(self, _action: str) -> Fault | None:
        return self.faults.choice(_FAULTS) if self.faults.random() < self.fault_rate else None

    async def bad_time(self, steps: int, kills: int) -> None:
        """So many steps, and as many more as it takes to be killed so often."""
        script = self.proxy.script
        script.decide = self.fault
        stepped = 0
        while stepped < steps or self.master.kills < kills:
            stepped += 1
            self._weather()
            if self.chance.random() < 0.6:
                self.fuse.points_left = self.chance.randrange(9)
            await self._step()
            self.check_never_twice()
            self.bench.clock.advance(self.chance.choice([0, 1_000, 15_000]))
        script.decide = lambda _action: None
        script.no_capacity.clear()
        self.fuse.points_left = None

    async def good_time(self, ms: int = 300_000) -> None:
        for _ in range(ms // 20_000):
            await self.master.guarded(*self.master.everything())
            await self.master.guarded(self.master.compare())
            await self.master.guarded(self.master.reap())
            self.bench.clock.advance(20_000)
            self.check_never_twice()

    async def _step(self) -> None:
        master = self.master
        up = [name for name, wanted in master.wanted.items() if wanted]
        match self.chance.randrange(6):
            case 0 | 1:
                self.named += 1
                master.wanted[InstanceId(f"i-{self.named}")] = True
                await master.guarded(*master.everything())
            case 2 if up:
                name = self.chance.choice(up)
                master.wanted[name] = False
                self.called_off.add(name)
                await master.guarded(*master.everything())
            case 3:
                await master.guarded(master.reap())
            case 4:
                await master.guarded(master.compare())
            case _:
                await master.guarded(*master.everything())

    def _weather(self) -> None:
        """Capacity comes and goes."""
        for kind in (BIG, BIGGER):
            for zone in ZONES:
                self.proxy.script.no_capacity.pop((kind.name, zone), None)
                if self.chance.random() < 0.4:
                    code = self.chance.choice(_REFUSALS)
                    self.proxy.script.no_capacity[kind.name, zone] = code

    # What must hold

    def check_never_twice(self) -> None:
        twice = {name: n for name, n in self.proxy.per_intent().items() if n > 1}
        assert not twice, f"launched more than once: {self._story(twice)}"

    def _story(self, names: Collection[str | None]) -> str:
        lines = [
            f"{each.launched_ms} {each.tag('eva:instance')} {each.ref} "
            f"{each.params['InstanceType']} {each.params['Placement.AvailabilityZone']} "
            f"seen from {each.seen_from_ms}, ended {each.ending_ms}"
            for each in self.proxy.launches
            if each.tag("eva:instance") in names
        ]
        return "\n".join([*lines, f"books {self.master.books}, starts {self.master.starts}"])

    def check_nothing_leaked(self) -> None:
        alive = {each.tag("eva:instance") for each in self.proxy.alive()}
        assert alive == set(self.master.wanted), "alive is exactly what the journal knows"
        assert all(self.master.wanted.values()), "everything that was to end has ended"

    def check_nothing_wrongly_ended(self) -> None:
        assert self.master.lost == []
        for each in self.proxy.launches:
            name = InstanceId(each.tag("eva:instance") or "")
            if each.ending_ms is not None and name not in self.called_off:
                assert name not in self.master.wanted, f"{name} was needed"
