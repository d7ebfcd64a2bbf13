"""The folder of one placement: what is written there, and what it says about the task.

lock             held by the supervisor for as long as it lives
launch.json      ref, labels and the mark by which stray processes are known; no environment
run.sh           the user's script, if there is one
work/            where the task starts, unless it says otherwise
supervisor.json  pid and start time of the supervisor; before anything of the task runs
task.json        the task was started
control          a FIFO to the supervisor
output.log       what the task printed
exit.json        how it ended; whoever finds the lock free and this missing writes it
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from eva.adapters.process.supervisor import start_time, write_durably
from eva.model.ids import TaskId
from eva.ports.runtime import ExitKind, TaskExit, TaskPhase, TaskRef, TaskStatus

LONGEST_NAME = 120  # file systems allow 255 bytes
MARK = "EVA_RUN_ID"  # in the environment of every process of a task


@dataclass(frozen=True, slots=True)
class Placement:
    ref: TaskRef
    folder: Path

    def file(self, name: str) -> Path:
        return self.folder / name

    def read(self, name: str) -> dict[str, Any] | None:
        try:
            content: dict[str, Any] = json.loads(self.file(name).read_bytes())
        except FileNotFoundError:
            return None
        return content

    @property
    def exists(self) -> bool:
        return self.file("launch.json").exists()

    def tell(self, command: str) -> bool:
        """Give the supervisor a command; False if it is no more."""
        try:
            control = os.open(self.file("control"), os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno in {errno.ENXIO, errno.ENOENT}:
                return False
            raise
        try:
            os.write(control, f"{command}\n".encode())
        finally:
            os.close(control)
        return True

    def supervisor(self) -> int | None:
        """A descriptor of the living supervisor, ready when it ends; None if it is no more."""
        recorded = self.read("supervisor.json")
        if recorded is None:
            return None
        try:
            handle = os.pidfd_open(recorded["pid"])
        except ProcessLookupError:
            return None
        if start_time(recorded["pid"]) != recorded["start_time"]:  # the pid was reused
            os.close(handle)
            return None
        return handle

    # ----------------------------------------------------------------------------------- status
    def status(self) -> TaskStatus:
        """Phase and exit. A task whose supervisor was killed is ended and sealed in passing."""
        launch = self.read("launch.json") or {}
        labels: dict[str, str] = launch.get("labels", {})
        found = self.read("exit.json")
        if found is None:
            with hold_lock(self.folder) as held:
                if not held:
                    running = self.file("task.json").exists()
                    phase = TaskPhase.RUNNING if running else TaskPhase.STARTING
                    return TaskStatus(self.ref, phase, labels=labels)
                found = self.read("exit.json") or self._seal(launch)
        if found is None:
            return TaskStatus(self.ref, TaskPhase.RUNNING, labels=labels)
        return TaskStatus(self.ref, TaskPhase.ENDED, exit_of(found), labels)

    def _seal(self, launch: dict[str, Any]) -> dict[str, Any] | None:
        """Write the end that nobody saw, once nothing is left; None while something is."""
        if kill_marked(launch["mark"]):
            return None
        begun = self.file("supervisor.json").exists()
        task = self.read("task.json") or {}
        sealed = {
            "refusal": None if begun else "the worker ended before the task was started",
            "lost": begun,
            "detail": "its supervisor was killed, or the machine restarted" if begun else "",
            "started_ms": task.get("started_ms"),
        }
        write_durably(str(self.file("exit.json")), sealed)
        return sealed


def exit_of(found: dict[str, Any]) -> TaskExit:
    """The typed end, from what `exit.json` holds."""
    times = {"started_ms": found.get("started_ms"), "finished_ms": found.get("finished_ms")}
    detail = found.get("detail", "")
    code, number = found.get("code"), found.get("signal")
    if found["refusal"] is not None:
        return TaskExit(ExitKind.NEVER_STARTED, detail=found["refusal"], **times)
    if found.get("lost"):
        return TaskExit(ExitKind.LOST, detail=detail, **times)
    if found["out_of_memory"]:
        return TaskExit(ExitKind.OOM_KILLED, code, number, detail, **times)
    if number is not None:
        return TaskExit(ExitKind.SIGNALLED, None, number, detail, **times)
    return TaskExit(ExitKind.EXITED, code, None, detail, **times)


@contextlib.contextmanager
def hold_lock(folder: Path) -> Iterator[bool]:
    """Take the lock if it is free, and say whether it was."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


# --------------------------------------------------------------------------------------- remains
def kill_marked(mark: str) -> bool:
    """Kill every process that carries this mark; True if there was one.

    Only for tasks whose supervisor was killed: the main process went with it by the kernel's hand,
    and what it had started is found by the environment that it inherited.
    """
    needle = f"{MARK}={mark}".encode()
    found = False
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(int(entry.name))  # first: what is read is then who is killed
            try:
                if needle in (entry / "environ").read_bytes().split(b"\0"):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    found = True
            finally:
                os.close(handle)
    return found


# ---------------------------------------------------------------------------------------- naming
def folder_name(text: str) -> str:
    """Any text as one harmless file name, readable where it can be."""
    name = quote(text, safe="").replace(".", "%2E")
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:LONGEST_NAME]}.{hashlib.sha256(text.encode()).hexdigest()}"


def placements_in(folder: Path, cluster: str) -> list[Placement]:
    """The placements in a task's folder, by epoch. Their own records say which task it is."""
    if not folder.is_dir():
        return []
    found = []
    for epoch in sorted(int(entry.name) for entry in folder.iterdir() if entry.name.isdigit()):
        path = folder / str(epoch)
        launch = Placement(TaskRef(cluster, TaskId(""), epoch), path).read("launch.json")
        if launch is not None:
            found.append(Placement(TaskRef(cluster, TaskId(launch["task"]), epoch), path))
    return found
