"""A bad time at EC2: a real master is killed again and again while calls fail and replies get lost.

EC2 is moto behind the proxy, which loses requests and replies, throttles, fails, runs out of types,
and shows instances and their ends late. The master is killed anywhere: while it starts, around the
calls that launch and terminate, while it writes its journal or its book of launches, and whenever.
Now and then the book is lost. Behind each instance is a machine whose real worker joins and runs
real tasks (`ProcessMachines`). Jobs come and are cancelled all the time, and instances
appear that nobody asked for.

Then EC2 is well, and within five minutes: nothing is alive that the journal does not know, no
intent ever got two instances, none was ended that the journal had not let go first, every job was
done exactly once with no step lost, and the bill covers what was rented. What is not covered here:
EC2 as it really is; machines as they really boot; prices, which are refused throughout; and five
minutes by the clock, which `tests/unit/adapters/aws/chaos.py` plays with a clock of its own. Here
what is to be reaped is said to be older than it is, and `settle_ms` is seconds.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from eva.adapters.aws.ec2 import BOOK_FILE
from eva.adapters.aws.names import Mark
from eva.ports.cloud import REAP_AFTER_MS
from tests.end_to_end.aws.cluster import SETTINGS, ZONES, aws_account
from tests.end_to_end.aws.killing import WISHES, Killer
from tests.end_to_end.aws.verdict import check_against_journal, check_bill
from tests.end_to_end.live.cluster import LiveCluster
from tests.end_to_end.live.feed import Feed, Say, Wish
from tests.support.cloud_proxy import (
    LOST_REPLY,
    LOST_REQUEST,
    THROTTLED,
    CloudProxy,
    Fault,
    Launch,
    refusal,
)
from tests.support.process_machines import ProcessMachines
from tests.support.strays import launch_directly

_FAULTS = (
    LOST_REPLY,
    LOST_REQUEST,
    THROTTLED,
    refusal("InternalError", 500),
    Fault("InternalError", 500, took_effect=True),
)
_RATES = (0.0, 0.1, 0.3)
_PRICES = frozenset({"GetProducts", "DescribeInstanceTypes", "DescribeSpotPriceHistory"})
_FORBIDDEN = refusal("UnauthorizedOperation", 403)
_SHORT_TYPES = ("p3.2xlarge", "p3.8xlarge", "c7i.4xlarge", "r7i.xlarge", "r7i.2xlarge")
_LARGEST = "p3.16xlarge"  # always to be had somewhere, so every job can be done
_ONE_ZONE_SHORT = 0.5
_REFUSALS = ("InsufficientInstanceCapacity", "VcpuLimitExceeded", "Unsupported")
_REFUSED, _STRAY, _BOOK_LOST, _CANCELLED = 0.05, 0.15, 0.05, 0.3
_LATEST_MS = 1_000  # that anything is shown; the adapter gives it four times as long
_FIVE_MINUTES_S, _NEXT_PATROLS_S, _LOOK_EVERY_S = 300.0, 60.0, 0.1

_SETTINGS = replace(
    SETTINGS, settle_ms=4 * _LATEST_MS, set_aside_ms=2_000, calls_per_second=100.0, burst=100
)


@dataclass
class BadTime:
    cluster: LiveCluster
    proxy: CloudProxy
    machines: ProcessMachines
    chance: random.Random
    say: Say
    feed: Feed = field(init=False)
    killer: Killer = field(init=False)
    faults: random.Random = field(init=False)
    fault_rate: float = 0.0
    ours: set[str] = field(default_factory=set)  # strays that bear our tag
    foreign: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.feed = Feed(self.cluster, self.chance, _CANCELLED)
        self.killer = Killer(self.cluster, self.chance)
        self.faults = random.Random(self.chance.random())
        script = self.proxy.script
        script.decide = self._fault
        script.on_call = lambda action: self.killer.come(f"before {action}")
        script.on_effect = lambda action: self.killer.come(f"after {action}")

    def _fault(self, action: str) -> Fault | None:
        if action in _PRICES:
            return _FORBIDDEN
        return self.faults.choice(_FAULTS) if self.faults.random() < self.fault_rate else None

    # A bad time

    def run(self, kills: int) -> None:
        for number in range(kills):
            self._weather()
            moment = self.killer.choose()
            self.feed.ask(number, WISHES.get(moment, Wish.ANYTHING))
            if self.chance.random() < _STRAY:
                self._stray(number)
            self.killer.kill(moment)
            self.check_never_twice()
            if self.chance.random() < _BOOK_LOST:
                self._lose_book()
            if number == kills - 1:
                self._recover()
            self.cluster.start()
        self.say(f"killed {dict(self.killer.killed)}, {len(self.proxy.launches)} launches")

    def _weather(self) -> None:
        script = self.proxy.script
        self.fault_rate = self.chance.choice(_RATES)
        script.visible_after_ms = self.chance.choice((0, _LATEST_MS // 2, _LATEST_MS))
        script.running_after_ms = self.chance.choice((0, _LATEST_MS))
        script.terminated_after_ms = self.chance.choice((0, _LATEST_MS))
        script.no_capacity = {
            (kind, zone): self.chance.choice(_REFUSALS)
            for kind in _SHORT_TYPES
            for zone in ZONES
            if self.chance.random() < _REFUSED
        }
        if self.chance.random() < _ONE_ZONE_SHORT:
            script.no_capacity[_LARGEST, ZONES[0]] = _REFUSALS[0]

    def _stray(self, number: int) -> None:
        """Left by a journal that was lost, or by ours and forgotten, or not ours at all."""
        (folder,) = (self.cluster.home / "aws").glob(f"*/{BOOK_FILE}")
        whose, mark = self.chance.choice(
            (
                (self.ours, Mark(SETTINGS.cluster, "lost")),
                (self.ours, Mark(SETTINGS.cluster, folder.parent.name)),
                (self.foreign, Mark("another", "lost")),
            )
        )
        name = f"i-{10_000 + number}"
        whose.add(launch_directly(self.proxy, mark, name, self.proxy.script.clock()))

    def _lose_book(self) -> None:
        for path in (self.cluster.home / "aws").glob(f"*/{BOOK_FILE}*"):
            path.unlink()
        self.say("its book of launches is lost")

    # A good one

    def _recover(self) -> None:
        """EC2 is well again, and what nobody asked for is old enough to go."""
        self.fault_rate = 0.0
        self.proxy.script.no_capacity = {}
        for each in self.proxy.launches:
            if each.ref in self.ours:
                each.launched_ms -= 2 * REAP_AFTER_MS

    def settle(self) -> None:
        """Let everything come to its end, and look at what is there then."""
        began_s = time.monotonic()
        self.feed.finish(machines_lost=False)
        self._until_nothing_is_left()
        took_s = time.monotonic() - began_s
        assert took_s < _FIVE_MINUTES_S
        assert self.machines.running() == []
        self.check_never_twice()
        check_bill(self.cluster, self._asked_for())
        self.say(f"{len(self.feed.accepted)} jobs over and nothing left after {took_s:.0f} s")

    def _until_nothing_is_left(self) -> None:
        deadline = time.monotonic() + _NEXT_PATROLS_S
        while left := [each for each in self.proxy.alive() if each.ref not in self.foreign]:
            assert time.monotonic() < deadline, f"leaked: {left}"
            time.sleep(_LOOK_EVERY_S)

    def check_never_twice(self) -> None:
        twice = {name: n for name, n in self.proxy.per_intent().items() if n > 1}
        assert not twice, f"launched more than once: {twice}"

    def _asked_for(self) -> list[Launch]:
        strays = self.ours | self.foreign
        return [each for each in self.proxy.launches if each.ref not in strays]

    def check_ends(self) -> None:
        """Once the master is gone: only what may be ended was."""
        check_against_journal(self.cluster, self._asked_for())
        for each in self.proxy.launches:
            if each.ref in self.foreign:
                assert each.ending_ms is None, f"{each.ref} is another cluster's"
            if each.ref in self.ours:
                assert each.ending_ms is not None
                assert each.ending_ms - each.launched_ms > REAP_AFTER_MS, f"{each.ref} was young"


@contextmanager
def rented(
    home: Path, moto: tuple[str, int]
) -> Iterator[tuple[LiveCluster, CloudProxy, ProcessMachines]]:
    """Machines are powered off at the end, whatever happened."""
    chosen = {
        "round_s": 0.5,
        "storage": str(home / "storage"),
        "catalog": "paper",
        "delay_scale": 0.005,
        "dead_man_s": 60.0,
        "advertise": "127.0.0.1",
    }
    with aws_account(home, moto, _SETTINGS, **chosen) as (cluster, proxy):
        cluster.warm = True
        machines = proxy.machines = ProcessMachines(proxy, home / "machines")
        try:
            yield cluster, proxy, machines
        finally:
            machines.close()


def kill_again_and_again(
    home: Path, moto: tuple[str, int], kills: int, seed: int, say: Say
) -> Counter[str]:
    """How many kills of which kind. Raises AssertionError where a promise was broken."""
    with rented(home, moto) as (cluster, proxy, machines):
        bad_time = BadTime(cluster, proxy, machines, random.Random(seed), say)
        cluster.start()
        try:
            bad_time.run(kills)
            bad_time.settle()
        except BaseException:
            cluster.kill()
            raise
        cluster.down()
        bad_time.check_ends()
    cluster.until_empty()
    return bad_time.killer.killed
