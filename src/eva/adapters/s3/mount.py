"""A bucket's folder mounted through rclone, in a process that outlives the worker.

rclone writes to the bucket behind the task's back. Before a mount is let go, and whenever the
shared folder has to be saved, its queue of uploads is asked for and waited on: an unmount alone
would leave what is still queued on this machine. The queue survives an rclone that dies; a file
that was closed in the very milliseconds before may not have reached it.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from eva.adapters.local_files import typed_file_errors
from eva.adapters.s3.bucket import Location
from eva.model.units import MS_PER_SECOND
from eva.ports.storage import StorageUnreachableError

POLL_S = 0.1
MOUNTED_WITHIN_MS = 20_000
_CA_BUNDLE = "AWS_CA_BUNDLE"
SAVED_WITHIN_MS = 600_000  # gigabytes may be queued


@dataclass(frozen=True, slots=True)
class _Process:
    """How to find the rclone of a mount again after the worker restarted."""

    pid: int
    port: int
    password: str


class RcloneMount:
    """One mounted folder. `state` is a folder of ours for rclone's cache, log and whereabouts."""

    def __init__(self, location: Location, name: str, target: Path, state: Path) -> None:
        self._location = location
        self._remote = f"eva:{location.bucket}/{location.key(name)}"
        self._target = target
        self._state = state

    def mount(self) -> None:
        """Mount, unless it is mounted already. What an earlier rclone had queued is taken up."""
        if self._is_mounted():
            return
        with typed_file_errors(f"preparing to mount on {self._target}"):
            for folder in (self._target, self._state):
                folder.mkdir(parents=True, exist_ok=True)
            process = self._start()
        _wait(lambda: self._is_mounted() or not _runs(process.pid), MOUNTED_WITHIN_MS)
        if not self._is_mounted():
            if _runs(process.pid):
                os.kill(process.pid, signal.SIGKILL)
            self._memory.unlink()
            raise StorageUnreachableError(
                f"rclone did not mount {self._location} on {self._target}: {self._last_words()}"
            )

    def save(self) -> None:
        """Wait until all that was written is in the bucket."""
        if self._recall() is None:
            return
        self.mount()  # again, should rclone have died: its queue is on disk
        if not _wait(lambda: self._queued() == 0, SAVED_WITHIN_MS):
            raise StorageUnreachableError(
                f"{self._queued()} files written to {self._target} are still not in "
                f"{self._location}: {self._last_words()}"
            )

    def unmount(self) -> None:
        """Save, then let go; nothing happens if it is not mounted."""
        self.save()
        process = self._recall()
        if process is None:
            return
        self._detach()
        if not _wait(lambda: not _runs(process.pid), MOUNTED_WITHIN_MS):
            raise StorageUnreachableError(
                f"{self._target} cannot be unmounted, something still uses it: "
                "stop what has files open there"
            )
        self._memory.unlink()

    def _start(self) -> _Process:
        """Start rclone on its own: it must not end with the worker."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        password = secrets.token_urlsafe(24)
        log = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        pid = os.posix_spawnp(
            "rclone",
            self._command(port),
            self._environment(password),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(self._state / "log"), log, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
        process = _Process(pid, port, password)
        self._remember(process)
        return process

    def _is_mounted(self) -> bool:
        """Whether a living rclone serves the folder; what a dead one left there is cleared."""
        try:
            return self._target.is_mount()
        except OSError as error:
            if error.errno != errno.ENOTCONN:
                raise
        self._detach("-z" if os.geteuid() else "-l")
        return False

    def _detach(self, *options: str) -> None:
        tool = ["fusermount3", "-u"] if os.geteuid() else ["umount"]
        subprocess.run(  # noqa: S603  our own words, and no shell
            [*tool, *options, str(self._target)], check=False, capture_output=True
        )

    @property
    def _memory(self) -> Path:
        return self._state / "process.json"

    def _command(self, port: int) -> list[str]:
        command = ["rclone", "mount", self._remote, str(self._target)]
        command += ["--config", os.devnull, "--cache-dir", str(self._state / "cache")]
        command += ["--vfs-cache-mode", "writes", "--vfs-write-back", "1s"]
        command += ["--dir-cache-time", "5s", "--attr-timeout", "1s"]
        command += ["--rc", "--rc-addr", f"127.0.0.1:{port}"]
        if _CA_BUNDLE in os.environ:
            command += ["--ca-cert", os.environ[_CA_BUNDLE]]
        # Containers run as other users than the worker; only root may let them in.
        return [*command, "--allow-other"] if os.geteuid() == 0 else command

    def _environment(self, password: str) -> dict[str, str]:
        """Credentials are taken from where boto3 takes them, and never stand on a command line."""
        # rclone's own HTTP transport chokes on this variable; it is told by an option instead.
        inherited = {name: value for name, value in os.environ.items() if name != _CA_BUNDLE}
        settings = {
            "TYPE": "s3",
            "PROVIDER": "Other" if self._location.endpoint else "AWS",
            "ENV_AUTH": "true",
            "NO_CHECK_BUCKET": "true",
            "ENDPOINT": self._location.endpoint,
            "REGION": self._location.region,
        }
        environment = {
            f"RCLONE_CONFIG_EVA_{key}": value for key, value in settings.items() if value
        }
        return {**inherited, **environment, "RCLONE_RC_USER": "eva", "RCLONE_RC_PASS": password}

    def _queued(self) -> int:
        """Files that rclone has not uploaded yet."""
        process = self._recall()
        if process is None:
            raise StorageUnreachableError(
                f"{self._memory} is gone, so that the rclone of {self._target} cannot be asked: "
                "unmount it by hand"
            )
        token = base64.b64encode(f"eva:{process.password}".encode()).decode()
        connection = HTTPConnection("127.0.0.1", process.port, timeout=10)
        try:
            connection.request("POST", "/vfs/stats", headers={"Authorization": f"Basic {token}"})
            cache = json.load(connection.getresponse())["diskCache"]
        except (HTTPException, OSError, ValueError, KeyError) as error:
            raise StorageUnreachableError(
                f"the rclone of {self._target} does not answer ({error}): {self._last_words()}"
            ) from error
        finally:
            connection.close()
        return int(cache["uploadsInProgress"]) + int(cache["uploadsQueued"])

    def _remember(self, process: _Process) -> None:
        with suppress(FileNotFoundError):
            self._memory.unlink()
        descriptor = os.open(self._memory, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as out:
            json.dump(asdict(process), out)

    def _recall(self) -> _Process | None:
        try:
            return _Process(**json.loads(self._memory.read_text()))
        except FileNotFoundError:
            return None

    def _last_words(self) -> str:
        try:
            lines = (self._state / "log").read_text(errors="replace").splitlines()
        except FileNotFoundError:
            lines = []
        return lines[-1] if lines else "it said nothing"


def _wait(condition: Callable[[], bool], within_ms: int) -> bool:
    """Poll another program until it is so, or the time is up."""
    deadline = time.monotonic() + within_ms / MS_PER_SECOND
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _runs(pid: int) -> bool:
    with suppress(ChildProcessError):  # ours to reap if we started it, else some other's
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
