"""The machine that a local instance pretends to be: one small process that outlives the master.

It comes up after the type's delays, keeps a worker running as an init system would, and when the
instance is to end it kills the worker, has every task of it stopped *with proof*, and only then
says that the instance is terminated. Run as `python -m eva.adapters.local FOLDER`,
with the lock's descriptor inherited, and held by being open.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from eva.adapters.local.folder import InstanceFolder

PR_SET_PDEATHSIG = 1
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 5.0  # between attempts at what failed
DONE = frozenset({0, 3})  # the worker has served its time, or is not wanted: power off

_libc = ctypes.CDLL(None)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Host:
    def __init__(self, folder: InstanceFolder, log: int) -> None:
        self._folder = folder
        self._log = log
        self._facts = folder.facts()
        self._ending = asyncio.Event()

    async def run(self) -> None:
        self._listen()
        folder, delays = self._folder, self._facts["delays"]
        reason = "terminated as asked"
        if await self._unless_ending(delays["acquire_ms"]):
            folder.mark("launched", now_ms())
            if await self._unless_ending(delays["boot_ms"]):
                reason = await self._keep_worker()
        await sweep(folder, self._log)
        if folder.marked("launched") is not None:
            await asyncio.sleep(delays["terminate_ms"] / 1_000)
        folder.mark("terminated", now_ms(), reason)

    def _listen(self) -> None:
        # Read and write, so that it never sees the end of its writers.
        control = os.open(self._folder.control, os.O_RDWR | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(control, self._look, control)
        self._look(control)

    def _look(self, control: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(control, 4_096)
        if self._folder.marked("terminate") is not None:
            self._ending.set()

    async def _unless_ending(self, wait_ms: int) -> bool:
        """Let time pass; whether the instance is still wanted then."""
        try:
            async with asyncio.timeout(wait_ms / 1_000):
                await self._ending.wait()
        except TimeoutError:
            return True
        return not self._ending.is_set()

    async def _keep_worker(self) -> str:
        """Run the worker, again if it crashes, until the instance ends; why it did."""
        wait_s = FIRST_WAIT_S
        self._folder.mark("booted", now_ms())
        while not self._ending.is_set():
            began_ms = now_ms()
            worker = await asyncio.create_subprocess_exec(
                *self._folder.worker_command(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
                preexec_fn=die_with(os.getpid()),
            )
            self._note_worker(worker.pid)
            code = await self._until_ended(worker)
            if code in DONE:
                return f"the worker ended with code {code}"
            if now_ms() - began_ms > 60_000:
                wait_s = FIRST_WAIT_S
            await self._unless_ending(int(wait_s * 1_000))
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
        return "terminated as asked"

    def _note_worker(self, pid: int) -> None:
        (self._folder.path / "worker.pid").write_text(str(pid))  # for people and tests

    async def _until_ended(self, worker: asyncio.subprocess.Process) -> int:
        ended = asyncio.ensure_future(worker.wait())
        ending = asyncio.ensure_future(self._ending.wait())
        await asyncio.wait({ended, ending}, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        with contextlib.suppress(ProcessLookupError):  # its children go with it, either way
            os.killpg(worker.pid, signal.SIGKILL)
        return await ended


async def sweep(folder: InstanceFolder, log: int) -> None:
    """Stop every task that is left here. Returns with proof, however long that takes."""
    if folder.marked("booted") is None:
        return  # no worker was ever here
    wait_s = FIRST_WAIT_S
    while True:
        sweeping = await asyncio.create_subprocess_exec(
            *folder.worker_command("--sweep"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        if await sweeping.wait() == 0:
            return
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, LONGEST_WAIT_S)


def die_with(parent: int) -> Callable[[], None]:
    """What a child runs first, to be killed when its parent is: a machine that lost power."""

    def constrain() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return constrain


def open_log(folder: InstanceFolder) -> int:
    return os.open(folder.path / "instance.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def main(path: str) -> None:
    """Become nobody's child, so that whoever launched us needs not wait for our end."""
    folder = InstanceFolder(Path(path))
    folder.mark("begun", now_ms())  # first, so that the loss of this process is noticed
    if os.fork() != 0:
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal that the master may have
    asyncio.run(Host(folder, open_log(folder)).run())
