"""How long this machine may live without its master, written where something else can see it.

A worker that hears of no master ends by itself and takes its machine with it. One that has crashed,
hangs, or cannot be started again cannot do that. So each word of the master renews a lease, a file
with the second of the machine's uptime until which it may live, and a watch that knows nothing else
powers the machine off after it. Uptime, because the wall clock may jump. The lease is longer than
the worker's own patience, which is to come first: it saves the tasks.
"""

from __future__ import annotations

import time
from pathlib import Path

import structlog

from eva.model.units import MS_PER_SECOND

MARGIN_S = 600
RENEWED_EVERY_S = 15

_log = structlog.get_logger("eva.worker")


class Lease:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._renewed_s: float | None = None

    def renew(self, dead_man_ms: int) -> None:
        """A word of the master has come. A lease that cannot be written must not harm the tasks."""
        now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        if self._renewed_s is not None and now_s - self._renewed_s < RENEWED_EVERY_S:
            return
        until_s = int(now_s) + dead_man_ms // MS_PER_SECOND + MARGIN_S
        partial = self._path.with_name(self._path.name + ".new")
        try:
            partial.write_text(f"{until_s}\n")
            partial.replace(self._path)
        except OSError as error:
            _log.error(
                "the lease of this machine cannot be renewed: it will be powered off",
                why=str(error),
            )
            return
        self._renewed_s = now_s
