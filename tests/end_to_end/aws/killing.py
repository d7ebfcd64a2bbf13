"""When a master is killed: at any time, or where a crash is most likely to hurt."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from eva.adapters.aws.ec2 import BOOK_FILE
from eva.adapters.stores import JOURNAL_FILE
from tests.end_to_end.live.cluster import LiveCluster
from tests.end_to_end.live.feed import Wish
from tests.support.warm import WarmMaster

_LIFE_S = 2.0  # at most, then it is killed wherever it is
_START_S = 0.8  # about what a start takes
_LOOK_EVERY_S = 0.0005
WISHES = {  # what has to be asked for if the moment is to come
    "writing the book": Wish.LAUNCH,
    "before RunInstances": Wish.LAUNCH,
    "after RunInstances": Wish.LAUNCH,
    "before TerminateInstances": Wish.END,
    "after TerminateInstances": Wish.END,
}
_MOMENTS = ("any time", "starting", "writing the journal", *WISHES)


@dataclass
class Killer:
    """`come` is called at each moment that the proxy sees, in any thread."""

    cluster: LiveCluster
    chance: random.Random
    killed: Counter[str] = field(default_factory=Counter)
    _awaited: str = ""
    _struck: threading.Event = field(default_factory=threading.Event)

    def come(self, moment: str) -> None:
        if moment == self._awaited and self.cluster.process is not None:
            self._awaited = ""
            os.kill(self.cluster.process.pid, signal.SIGKILL)
            self._struck.set()

    def choose(self) -> str:
        return self.chance.choice(_MOMENTS)

    def kill(self, moment: str) -> None:
        """At this moment, or at the end of this life where that does not come."""
        came = True
        if moment == "starting":
            self._start_again()
        elif moment == "writing the book":
            came = self._until_written(f"aws/*/{BOOK_FILE}-wal")
        elif moment == "writing the journal":
            came = self._until_written(f"{JOURNAL_FILE}-wal")
        elif moment == "any time":
            time.sleep(self.chance.uniform(0.0, _LIFE_S))
        else:
            came = self._until_called(moment)
        self.cluster.kill()
        self.killed[moment if came else "any time"] += 1

    def _start_again(self) -> None:
        """The master that is killed is one that has not come up yet."""
        self.cluster.kill()
        self.cluster.process = WarmMaster(self.cluster.options)
        time.sleep(self.chance.uniform(0.0, _START_S))

    def _until_called(self, moment: str) -> bool:
        self._struck.clear()
        self._awaited = moment
        came = self._struck.wait(_LIFE_S)
        self._awaited = ""
        return came

    def _until_written(self, pattern: str) -> bool:
        """Whether something was; the kill then comes within or just after the write."""
        before, deadline = _stamps(self.cluster.home, pattern), time.monotonic() + _LIFE_S
        while _stamps(self.cluster.home, pattern) == before:
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_EVERY_S)
        return True


def _stamps(home: Path, pattern: str) -> list[tuple[int, int]]:
    found = [path.stat() for path in home.glob(pattern)]
    return [(each.st_mtime_ns, each.st_size) for each in found]
