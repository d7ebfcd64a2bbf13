"""Machines for the instances of the proxy, as processes: what was launched boots and runs a worker.

Each is one process that runs a real `eva worker` with the bootstrap and the capacity from the
launch's user data, again if it crashes, and that owns whatever comes of it: powered off, it ends
only when nothing of all that is left. A worker that is done, or not wanted, powers the machine off,
which terminates the instance. The script in the user data itself is not run, nothing is isolated,
and the capacity is virtual.
"""

from __future__ import annotations

import base64
import ctypes
import os
import re
import signal
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from eva.adapters.local.host import DONE, FIRST_WAIT_S, PR_SET_PDEATHSIG
from eva.adapters.process.supervisor import PR_SET_CHILD_SUBREAPER
from tests.support.cloud_proxy import ByTheClock, CloudProxy, Launch
from tests.support.warm import Start, be_eva, forked

_NOBODY = "http://127.0.0.1:9"  # no metadata service is there
_OFF_WITHIN_S = 30.0


class ProcessMachines(ByTheClock):
    """`folder` is for what they have on disk. They see the storage and the master of this host.

    They come and go as fast as the script says, or more slowly.
    """

    def __init__(self, proxy: CloudProxy, folder: Path) -> None:
        super().__init__(proxy)
        self._folder = folder
        self._running: dict[str, ForkServerProcess] = {}

    def begin(self, launch: Launch) -> None:
        disk = self._folder / launch.ref
        disk.mkdir(parents=True, mode=0o700)
        bootstrap, capacity = told(launch)
        (disk / "bootstrap").touch(mode=0o600)
        (disk / "bootstrap").write_text(bootstrap)
        words = ["worker", "--bootstrap-file", str(disk / "bootstrap"), "--state"]
        words += [str(disk / "worker"), "--capacity", capacity, "--virtual", "--redial-ms", "200"]
        environment = {**os.environ, "AWS_EC2_METADATA_SERVICE_ENDPOINT": _NOBODY}
        start = Start(words, environment, disk / "worker.log", disk)
        self._running[launch.ref] = forked(be_machine, start)

    def end(self, launch: Launch) -> None:
        machine = self._running.get(launch.ref)
        if machine is not None:
            machine.terminate()

    def state(self, launch: Launch) -> str:
        """One that powered itself off has terminated its instance."""
        off = self._is_off(launch)
        if off and launch.ending_ms is None:
            launch.ending_ms = self.proxy.script.clock()
        state = super().state(launch)
        return "shutting-down" if state == "terminated" and not off else state

    def _is_off(self, launch: Launch) -> bool:
        """What has no machine is as off as it was asked to be."""
        machine = self._running.get(launch.ref)
        return launch.ending_ms is not None if machine is None else machine.exitcode is not None

    def running(self) -> list[str]:
        return [ref for ref, machine in self._running.items() if machine.exitcode is None]

    def close(self) -> None:
        for machine in self._running.values():
            machine.terminate()
        for machine in self._running.values():
            machine.join(_OFF_WITHIN_S)


def told(launch: Launch) -> tuple[str, str]:
    """What the instance is given: the bootstrap and the capacity."""
    script = base64.b64decode(launch.params["UserData"]).decode()
    (bootstrap,) = re.findall(r"eva1\.\S+", script)
    (capacity,) = re.findall(r"^capacity=(\S*)$", script, re.MULTILINE)
    return bootstrap, capacity


# In the machine's own process


def be_machine(start: Start) -> None:
    """Until it is powered off, or its worker has nothing to do here any more."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGTERM, _pulled)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while _worker_ends(start) not in DONE:
            time.sleep(FIRST_WAIT_S)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _kill_everything()


def _pulled(_number: int, _frame: object) -> None:
    raise SystemExit


def _worker_ends(start: Start) -> int:
    """Run it; its exit code. Orphans of its tasks are buried on the way."""
    worker = os.fork()
    if worker == 0:
        _be_worker(start)
    while True:
        ended, status = os.wait()
        if ended == worker:
            return os.waitstatus_to_exitcode(status)


def _be_worker(start: Start) -> None:
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        be_eva(start)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(code)


def _kill_everything() -> None:
    """Children of what is killed become ours, so this ends when there is nobody left."""
    me = os.getpid()
    while True:
        for pid in Path(f"/proc/{me}/task/{me}/children").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return
