"""Tasks as processes of this machine, each under a supervisor of its own that outlives the worker.

What a container would isolate is not isolated here: tasks see this machine's files and network.
Mounts are therefore told, not made: the variable of a mount names its source, and a working
directory below a mount's target is taken to the same place below its source. The task gets a clean
environment, a CPU affinity and the limits that `supervisor` describes.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path, PurePosixPath
from signal import SIGTERM
from typing import Any

from eva.adapters.machine import discard, disk_problem, disk_problems, stage
from eva.adapters.process import supervisor
from eva.adapters.process.placement import (
    MARK,
    Placement,
    folder_name,
    hold_lock,
    placements_in,
)
from eva.model.errors import EvaError
from eva.ports.runtime import (
    LOG_START,
    Argv,
    Home,
    LaunchRefusedError,
    LogChunk,
    LogCursor,
    Mount,
    NoSuchDeviceError,
    Preparation,
    Prepared,
    RuntimeRefusedError,
    RuntimeTraits,
    Script,
    StillRunningError,
    StopProof,
    StopUnprovenError,
    TaskExit,
    TaskLaunch,
    TaskPhase,
    TaskRef,
    TaskStatus,
    UnknownTaskError,
    UnsupportedError,
    check_epochs,
    check_home,
)

# What a task inherits of the worker's environment. Not its credentials.
INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
KILL_PATIENCE_S = 30.0  # after the grace period: for processes in the middle of a write
POLL_S = 0.05
CHUNK_BYTES = 64 * 1024
TRAITS = RuntimeTraits("process", images=False, mounts=False, networks=False, hard_limits=False)


class ProcessRuntime:
    """`gpus` are the UUIDs that this machine has; None takes any, for virtual capacity."""

    def __init__(self, home: Home, state: Path, gpus: frozenset[str] | None = None) -> None:
        self._home = home
        self._gpus = gpus
        self._folder = state / folder_name(home.cluster) / folder_name(home.instance)
        with disk_problems(str(self._folder)):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def home(self) -> Home:
        return self._home

    @property
    def traits(self) -> RuntimeTraits:
        return TRAITS

    # --------------------------------------------------------------------------------- beginning
    async def prepare(self, preparation: Preparation) -> Prepared:
        if preparation.image is not None:
            raise UnsupportedError.single(
                "image",
                f"{preparation.image} needs Docker, and this worker runs tasks as plain "
                "processes: leave the image out, or start the worker with the docker runtime",
            )
        for staging in preparation.staging:
            await asyncio.to_thread(stage, staging)
        return Prepared(None)

    async def start(self, launch: TaskLaunch) -> TaskStatus:
        ref = launch.ref
        check_home(ref, self._home)
        known = [placement.status() for placement in self._placements(ref)]
        for status in known:
            if status.ref == ref:
                return status
        check_epochs(ref, known)
        self._check_devices(launch)
        placement = self._placement(ref)
        mark = uuid.uuid4().hex
        order = self._order(launch, placement, mark)
        with disk_problems(str(placement.folder)):
            lock = await asyncio.to_thread(self._write_folder, launch, placement, mark)
        if lock is None:  # another call was first
            return await self.status(ref)
        try:
            with disk_problems(str(placement.folder)):
                await self._spawn(order, placement, lock)
        except EvaError:
            await asyncio.to_thread(discard, placement.folder)
            raise
        finally:
            os.close(lock)
        return await self.status(ref)

    def _check_devices(self, launch: TaskLaunch) -> None:
        missing_cpus = sorted(set(launch.cpus) - os.sched_getaffinity(0))
        if missing_cpus:
            raise NoSuchDeviceError(
                f"task {launch.ref} is to run on CPUs {missing_cpus}, and this machine has "
                f"{sorted(os.sched_getaffinity(0))}: correct the worker's CPUs"
            )
        missing_gpus = [] if self._gpus is None else sorted(set(launch.gpus) - self._gpus)
        if missing_gpus:
            raise NoSuchDeviceError(
                f"task {launch.ref} is to run on GPUs {missing_gpus}, and this machine has "
                f"{sorted(self._gpus or ())}: check `nvidia-smi -L`"
            )

    def _write_folder(self, launch: TaskLaunch, placement: Placement, mark: str) -> int | None:
        """Make the folder under its lock; the lock's descriptor, or None if it was there."""
        partial = self._folder / f".new-{uuid.uuid4().hex}"
        (partial / "work").mkdir(parents=True, mode=0o700)
        lock = os.open(partial / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if isinstance(launch.program, Script):
                (partial / "run.sh").write_text(launch.program.file_text(), encoding="utf-8")
            supervisor.write_durably(
                str(partial / "launch.json"),
                {
                    "task": launch.ref.task,
                    "epoch": launch.ref.epoch,
                    "labels": dict(launch.labels),
                    "mark": mark,
                },
            )
            placement.folder.parent.mkdir(exist_ok=True, mode=0o700)
            partial.rename(placement.folder)
            supervisor.sync_folder(str(placement.folder.parent))
        except OSError:
            os.close(lock)
            discard(partial)
            if placement.exists:
                return None
            raise
        return lock

    async def _spawn(self, order: dict[str, Any], placement: Placement, lock: int) -> None:
        """Start the supervisor, which answers once the start is on disk."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            supervisor.__file__,
            str(placement.folder),
            str(lock),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=(lock,),
            start_new_session=True,
        )
        said, complaint = await process.communicate(json.dumps(order).encode())
        if not said:
            raise RuntimeRefusedError(
                f"the supervisor of task {placement.ref} died before starting it: "
                f"{complaint.decode(errors='replace')[-2_000:]}. The task may be started again"
            )
        answer: dict[str, Any] = json.loads(said)
        if answer:
            raise disk_problem(answer["errno"], answer["message"], str(placement.folder))

    def _order(self, launch: TaskLaunch, placement: Placement, mark: str) -> dict[str, Any]:
        env = {name: os.environ[name] for name in INHERITED if name in os.environ}
        env |= {mount.variable: str(mount.source) for mount in launch.mounts if mount.variable}
        env |= dict(launch.env)
        env |= {"CUDA_VISIBLE_DEVICES": ",".join(launch.gpus), MARK: mark}
        return {
            "argv": self._argv(launch, placement),
            "env": env,
            "cwd": self._workdir(launch, placement),
            "cpus": list(launch.cpus),
            "memory_mib": launch.limits.memory_mib,
            "pids": launch.limits.pids,
        }

    def _argv(self, launch: TaskLaunch, placement: Placement) -> list[str]:
        match launch.program:
            case Argv(words) if words:
                return list(words)
            case Script(interpreter=interpreter):
                return [interpreter, str(placement.file("run.sh"))]
        raise LaunchRefusedError.single(
            str(launch.ref), "has no program, and without an image there is no default: give `run`"
        )

    def _workdir(self, launch: TaskLaunch, placement: Placement) -> str:
        if launch.workdir is None:
            return str(placement.file("work"))
        return str(seen_at(launch.workdir, launch.mounts))

    # ------------------------------------------------------------------------------------ ending
    async def signal(self, ref: TaskRef, number: int) -> None:
        self._known(ref).tell(f"signal {int(number)}")

    async def stop(self, ref: TaskRef, grace_ms: int, number: int = SIGTERM) -> StopProof:
        placement = self._known(ref)
        try:
            async with asyncio.timeout(grace_ms / 1000 + KILL_PATIENCE_S):
                while not placement.tell(f"stop {int(number)} {grace_ms}"):
                    status = await self.status(ref)
                    if status.exit is not None:
                        return StopProof(ref, status.exit)
                    await asyncio.sleep(POLL_S)  # it is about to begin, or to be found dead
                return StopProof(ref, await self.wait(ref))
        except TimeoutError:
            raise StopUnprovenError(
                f"task {ref} was killed and is not gone {KILL_PATIENCE_S:g}s later: a process of "
                f"it is stuck in the kernel (storage?). Ask again, or terminate the instance"
            ) from None

    async def wait(self, ref: TaskRef) -> TaskExit:
        placement = self._known(ref)
        while True:
            handle = placement.supervisor()
            if handle is not None:
                await readable(handle)
            status = await asyncio.to_thread(placement.status)
            if status.exit is not None:
                return status.exit
            await asyncio.sleep(POLL_S)  # about to begin, or its remains are about to die

    async def status(self, ref: TaskRef) -> TaskStatus:
        return await asyncio.to_thread(self._known(ref).status)

    async def adopt(self) -> Sequence[TaskStatus]:
        return await asyncio.to_thread(self._adopt)

    def _adopt(self) -> list[TaskStatus]:
        for partial in self._folder.glob(".*"):  # of starts and removals that were cut short
            with hold_lock(partial) as free:
                if free:
                    discard(partial)
        return sorted(
            (
                placement.status()
                for folder in self._folder.iterdir()
                for placement in placements_in(folder, self._home.cluster)
            ),
            key=lambda status: status.ref,
        )

    async def remove(self, ref: TaskRef) -> None:
        status = await self.status(ref)
        if status.phase is not TaskPhase.ENDED:
            raise StillRunningError(f"task {ref} is {status.phase.value}: stop it before removing")
        await asyncio.to_thread(self._remove, self._known(ref))

    def _remove(self, placement: Placement) -> None:
        gone = self._folder / f".gone-{uuid.uuid4().hex}"
        with disk_problems(str(placement.folder)):
            placement.folder.rename(gone)
        discard(gone)
        with contextlib.suppress(OSError):  # another epoch lives there
            placement.folder.parent.rmdir()

    async def close(self) -> None:
        """Nothing is held: supervisors need nobody."""

    # -------------------------------------------------------------------------------------- logs
    async def logs(
        self, ref: TaskRef, cursor: LogCursor = LOG_START, *, follow: bool = True
    ) -> AsyncIterator[LogChunk]:
        placement = self._known(ref)
        offset = int(cursor or 0)
        with placement.file("output.log").open("rb") as output:
            while True:
                # Asked before reading: what was printed before the end is then read for certain.
                ended = not follow or placement.status().phase is TaskPhase.ENDED
                # Skips what was given back to the disk.
                offset = after_hole(output.fileno(), offset)
                output.seek(offset)
                while data := output.read(CHUNK_BYTES):
                    offset += len(data)
                    yield LogChunk(data, LogCursor(str(offset)))
                if ended:
                    return
                await asyncio.sleep(POLL_S)

    # ------------------------------------------------------------------------------------ naming
    def _placement(self, ref: TaskRef) -> Placement:
        return Placement(ref, self._folder / folder_name(ref.task) / str(ref.epoch))

    def _placements(self, ref: TaskRef) -> list[Placement]:
        return placements_in(self._folder / folder_name(ref.task), self._home.cluster)

    def _known(self, ref: TaskRef) -> Placement:
        check_home(ref, self._home)
        placement = self._placement(ref)
        if not placement.exists:
            raise UnknownTaskError(ref)
        return placement


def seen_at(path: str, mounts: Sequence[Mount]) -> Path:
    """Where on this machine a path of the task is: below the source of its innermost mount."""
    wanted = PurePosixPath(path)
    for mount in sorted(mounts, key=lambda mount: -len(PurePosixPath(mount.target).parts)):
        if wanted.is_relative_to(mount.target):
            return mount.source / wanted.relative_to(mount.target)
    return Path(wanted)


def after_hole(descriptor: int, offset: int) -> int:
    """The first offset from here on that still holds data; `offset` itself at the end of file."""
    try:
        return max(offset, os.lseek(descriptor, offset, os.SEEK_DATA))
    except OSError:  # ENXIO: nothing follows
        return offset


async def readable(handle: int) -> None:
    """Wait for a descriptor, and close it."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(handle, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)
