"""The cloud on this machine: every instance a folder and a host process, whatever its type.

Capacity is virtual and prices are the catalog's, so a laptop can rent sixteen p3.16xlarge. What is
real is everything else: workers join over TLS, tasks run as processes or containers, and instances
live on when the master is killed, are found again by their folders, and end with proof.
"""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from eva.adapters.local import host
from eva.adapters.local.folder import InstanceFolder, sync_folder, write_durably
from eva.adapters.machine import discard
from eva.model.catalog import InstanceDelays
from eva.model.errors import OperatorError
from eva.model.ids import InstanceId
from eva.ports.cloud import (
    REAP_AFTER_MS,
    CloudInstance,
    CloudState,
    InstanceNotFoundError,
    LaunchIntent,
    Reaped,
)
from eva.ports.storage import checked_name

WORKER = (sys.executable, "-m", "eva.worker")


@dataclass(frozen=True, slots=True)
class LocalDelays:
    """How long instances take: `fixed` for all, or those of their type times `scale`."""

    scale: float = 0.0
    fixed: InstanceDelays | None = None

    def of(self, delays: InstanceDelays) -> dict[str, int]:
        if self.fixed is not None:
            chosen, scale = self.fixed, 1.0
        else:
            chosen, scale = delays, self.scale
        return {
            "acquire_ms": round(chosen.acquire_ms * scale),
            "boot_ms": round(chosen.setup_ms * scale),
            "terminate_ms": round(chosen.terminate_ms * scale),
        }


class LocalCloud:
    """`worker` is the command of a worker, without its options."""

    name = "local"

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], int],
        delays: LocalDelays | None = None,
        worker: Sequence[str] = WORKER,
    ) -> None:
        self._root = folder.absolute()
        self._clock = clock
        self._delays = delays or LocalDelays()
        self._worker = tuple(worker)
        self._busy = asyncio.Lock()  # one launch at a time: the machine has few cores anyway

    async def check(self) -> None:
        try:
            await asyncio.to_thread(self._root.mkdir, parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise OperatorError(
                f"the local cloud cannot keep its instances in {self._root} ({error}): choose "
                "another folder, or mend its permissions"
            ) from error

    async def launch(self, intent: LaunchIntent) -> CloudInstance:
        folder = self._folder(intent.instance)
        await self.check()
        async with self._busy:
            await asyncio.to_thread(self._write, folder, intent)
            lock = folder.lock()
            if lock is not None:  # nobody hosts it
                try:
                    await self._begin(folder, lock)
                finally:
                    os.close(lock)
        return await self.describe(intent.instance)

    def _write(self, folder: InstanceFolder, intent: LaunchIntent) -> None:
        """Make the folder, whole or not at all, unless it is there."""
        if folder.exists():
            return
        partial = InstanceFolder(self._root / f".new-{uuid.uuid4().hex}")
        try:
            partial.path.mkdir(mode=0o700)
            partial.worker_state.mkdir(mode=0o700)
            partial.bootstrap.touch(mode=0o600)
            partial.bootstrap.write_text(intent.bootstrap)
            os.mkfifo(partial.control, 0o600)
            facts = {
                "instance": intent.instance,
                "type": intent.type.name,
                "capacity": list(intent.type.capacity),
                "delays": self._delays.of(intent.type.delays),
                "command": list(self._worker),
                "spot": intent.spot,
                "zone": next(iter(intent.zones), "here"),
            }
            write_durably(partial.path / "machine.json", facts)
            partial.path.rename(folder.path)
            sync_folder(self._root)
        except OSError as error:
            discard(partial.path)
            if folder.exists():
                return
            raise OperatorError(
                f"the folder of {intent.instance} cannot be made in {self._root} ({error}): check "
                "the space and the permissions there"
            ) from error

    async def _begin(self, folder: InstanceFolder, lock: int) -> None:
        """Start the host, which inherits the lock; once in the life of an instance."""
        if any(folder.marked(name) is not None for name in ("begun", "terminate", "terminated")):
            return
        log = host.open_log(folder)
        try:
            starting = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "eva.adapters.local",
                str(folder.path),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock,),
                start_new_session=True,
            )
            code = await starting.wait()
        finally:
            os.close(log)
        if code != 0:
            raise OperatorError(
                f"the host of {folder.path.name} did not start (exit code {code}): see "
                f"{folder.path / 'instance.log'}"
            )

    async def terminate(self, instance: InstanceId) -> CloudInstance:
        folder = self._known(instance)
        folder.mark("terminate", self._clock())
        folder.wake_host()
        return await self.describe(instance)

    async def list(self) -> Sequence[CloudInstance]:
        if not self._root.is_dir():
            return []
        folders = [InstanceFolder(path) for path in sorted(self._root.glob("[!.]*"))]
        return [await self._told(folder) for folder in folders if folder.exists()]

    async def reap(self, known: Callable[[], Collection[InstanceId]]) -> Sequence[Reaped]:
        old_ms = self._clock() - REAP_AFTER_MS
        old = [
            each
            for each in await self.list()
            if each.state is not CloudState.TERMINATED
            and self._folder(each.instance).made_ms < old_ms
        ]
        intents = known()
        return [
            Reaped((await self.terminate(each.instance)).ref, each.instance, "nobody knows of it")
            for each in old
            if each.instance not in intents
        ]

    async def describe(self, instance: InstanceId) -> CloudInstance:
        return await self._told(self._known(instance))

    async def close(self) -> None:
        """Nothing is held: instances need nobody."""

    async def _told(self, folder: InstanceFolder) -> CloudInstance:
        await self._bury(folder)
        facts = folder.facts()
        launched, terminated = folder.marked("launched"), folder.marked("terminated")
        return CloudInstance(
            InstanceId(facts["instance"]),
            f"local-{facts['instance']}",
            facts["type"],
            _state(folder),
            launched["at_ms"] if launched else None,
            terminated["at_ms"] if terminated else None,
            facts["spot"],
            facts["zone"],
            "127.0.0.1",
            terminated["reason"] if terminated else "",
        )

    async def _bury(self, folder: InstanceFolder) -> None:
        """An instance whose host is gone, or never was and is not wanted, ends here, swept."""
        if folder.marked("terminated") is not None:
            return
        begun, unwanted = folder.marked("begun"), folder.marked("terminate")
        if begun is None and unwanted is None:
            return  # its launch was cut short; it will be asked for again, or terminated
        with folder.held() as hostless:
            if not hostless or folder.marked("terminated") is not None:
                return
            log = host.open_log(folder)
            try:
                await host.sweep(folder, log)
            finally:
                os.close(log)
            reason = "terminated as asked" if unwanted else "its host process is gone"
            folder.mark("terminated", self._clock(), reason)

    def _folder(self, instance: InstanceId) -> InstanceFolder:
        return InstanceFolder(self._root / checked_name("instance", instance))

    def _known(self, instance: InstanceId) -> InstanceFolder:
        folder = self._folder(instance)
        if not folder.exists():
            raise InstanceNotFoundError(
                f"the local cloud has no instance {instance} in {self._root}: it was never "
                "launched, or its folder was removed"
            )
        return folder


def _state(folder: InstanceFolder) -> CloudState:
    marks = (
        ("terminated", CloudState.TERMINATED),
        ("terminate", CloudState.STOPPING),
        ("launched", CloudState.RUNNING),
    )
    for name, state in marks:
        if folder.marked(name) is not None:
            return state
    return CloudState.PENDING
