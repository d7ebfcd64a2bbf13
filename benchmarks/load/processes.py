"""The two processes of a load, and their end: nothing is left behind, however it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_LOOK_EVERY_S = 0.1


class Started:
    """A module run as a program of its own, with everything that it starts."""

    def __init__(self, module: str, log: Path, **options: object) -> None:
        words = [sys.executable, "-m", module]
        for name, value in options.items():
            words += [f"--{name}", str(value)]
        self.module = module
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603  our own modules
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for whoever measures
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    async def until(self, there: Callable[[], bool], within_s: float) -> None:
        async with asyncio.timeout(within_s):
            while not there():
                self.check()
                await asyncio.sleep(_LOOK_EVERY_S)

    def check(self) -> None:
        """It is not to end by itself."""
        code = self._process.poll()
        if code is not None:
            last = self.log.read_text(errors="replace").splitlines()[-15:]
            raise RuntimeError("\n".join([f"{self.module} ended with {code}:", *last]))

    async def stop(self, within_s: float) -> int:
        """Ask it to end; its exit code. What does not end is killed, with all of its children."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            return await asyncio.to_thread(self._process.wait, within_s)
        finally:
            self.kill()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
