"""Tasks as Docker containers. The engine keeps them, so the worker may die at any time.

The container's name is the placement, so a start that is repeated finds the first one; its labels
say whose it is, so a worker that comes back finds what it had; and it is kept when it has ended,
with its exit code and its output, until it is removed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any

from eva.adapters.docker import containers
from eva.adapters.docker.deaths import Deaths
from eva.adapters.docker.engine import ConflictError, Engine, NotFoundError
from eva.adapters.docker.images import Images
from eva.adapters.docker.networks import Networks
from eva.adapters.machine import stage
from eva.model.errors import EvaError
from eva.ports.runtime import (
    LOG_START,
    DiskFullError,
    ExitKind,
    Home,
    ImageNotFoundError,
    LogChunk,
    LogCursor,
    NoSuchDeviceError,
    Preparation,
    Prepared,
    RuntimeTraits,
    RuntimeUnreachableError,
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

KILL_AGAIN_S = 1.0
KILL_PATIENCE_S = 30.0
RECHECK_S = 2.0  # should the stream of events have missed one
# The init process is what the engine executes; whether it could execute the program, it prints.
NOT_EXECUTED = (126, 127)
INIT_COMPLAINT = b"[FATAL tini"
TRAITS = RuntimeTraits("docker", images=True, mounts=True, networks=True, hard_limits=True)


class DockerRuntime:
    """`state` is a folder for build locks; `image_store`, if given, a shared one for images."""

    def __init__(
        self,
        home: Home,
        state: Path,
        image_store: Path | None = None,
        url: str | None = None,
    ) -> None:
        self._home = home
        self._engine = Engine(url)
        self._images = Images(self._engine, home.cluster, state, image_store)
        self._networks = Networks(self._engine, home.cluster)
        self._deaths = Deaths(self._engine, home)
        self._starting: set[TaskRef] = set()
        self._never_started: dict[TaskRef, TaskStatus] = {}

    @property
    def home(self) -> Home:
        return self._home

    @property
    def traits(self) -> RuntimeTraits:
        return TRAITS

    # --------------------------------------------------------------------------------- beginning
    async def prepare(self, preparation: Preparation) -> Prepared:
        if preparation.image is None:
            raise UnsupportedError.single(
                "image", "is missing, and the docker runtime runs tasks in images: name one"
            )
        for staging in preparation.staging:
            await asyncio.to_thread(stage, staging)
        return await self._images.have(preparation.image)

    async def start(self, launch: TaskLaunch) -> TaskStatus:
        ref = launch.ref
        check_home(ref, self._home)
        if launch.prepared.image is None:
            raise ImageNotFoundError.single(str(ref), "has no image: prepare one and pass it on")
        if ref in self._never_started:
            return self._never_started[ref]
        if ref in self._starting:
            return TaskStatus(ref, TaskPhase.STARTING, labels=launch.labels)
        self._starting.add(ref)
        try:
            check_epochs(ref, await self._siblings(ref))
            await self._create(launch)
            await self._begin(launch)
        finally:
            self._starting.discard(ref)
        return await self.status(ref)

    async def _siblings(self, ref: TaskRef) -> list[TaskStatus]:
        """The other placements of this task here. Cheap, but for those that may never start."""
        statuses = [
            TaskStatus(containers.ref_of(each["Labels"]), containers.PHASES[each["State"]])
            for each in await self._list(f"{containers.TASK}={ref.task}")
        ]
        return [
            await self.status(status.ref) if status.phase is TaskPhase.STARTING else status
            for status in statuses
            if status.ref != ref
        ]

    async def _list(self, *labels: str) -> list[dict[str, Any]]:
        filters = containers.home_filter(self._home, *labels)
        found: list[dict[str, Any]] = await self._engine.call(
            f"the tasks of {self._home.instance}",
            lambda api: api.containers(all=True, filters=filters),
        )
        return found

    async def _create(self, launch: TaskLaunch) -> None:
        """Make the container; the one that is there already is as good."""
        if launch.network is not None:
            network = containers.network_name(self._home.cluster, launch.network.name)
            await self._networks.have(network)

        def create(api: Any) -> None:
            networking = None
            if launch.network is not None:
                endpoint = api.create_endpoint_config(aliases=[launch.network.alias])
                networking = api.create_networking_config({network: endpoint})
            api.create_container(
                **containers.container_settings(launch, self._home),
                host_config=api.create_host_config(**containers.host_settings(launch, self._home)),
                networking_config=networking,
            )

        with contextlib.suppress(ConflictError):
            await self._engine.call(f"task {launch.ref}", create)

    async def _begin(self, launch: TaskLaunch) -> None:
        """Start the container, unless it was started before."""
        ref = launch.ref
        name = containers.container_name(ref, self._home)
        info = await self._inspect(ref)
        if info["State"]["Status"] != "created" or info["State"]["Error"]:
            return

        def begin(api: Any) -> None:
            if isinstance(launch.program, Script):
                api.put_archive(name, "/", containers.script_archive(launch.program))
            api.start(name)

        try:
            await self._engine.call(f"task {ref}", begin)
        except (DiskFullError, NoSuchDeviceError, RuntimeUnreachableError):
            await self._drop(ref)
            raise
        except EvaError:
            # The engine remembers why a container could not begin; that is the task's end. What
            # it does not remember never was.
            info = await self._inspect(ref)
            if info["State"]["Status"] == "created" and not info["State"]["Error"]:
                await self._drop(ref)
                raise

    # ------------------------------------------------------------------------------------ ending
    async def signal(self, ref: TaskRef, number: int) -> None:
        check_home(ref, self._home)
        name = containers.container_name(ref, self._home)
        try:
            await self._engine.call(f"task {ref}", lambda api: api.kill(name, int(number)))
        except ConflictError:  # it has ended
            return
        except NotFoundError:
            if ref not in self._never_started:
                raise UnknownTaskError(ref) from None

    async def stop(self, ref: TaskRef, grace_ms: int, number: int = SIGTERM) -> StopProof:
        """The container's processes share a namespace: with its init, the kernel ends them all."""
        await self.signal(ref, number)
        try:
            async with asyncio.timeout(grace_ms / 1000):
                return StopProof(ref, await self.wait(ref))
        except TimeoutError:
            pass
        try:
            async with asyncio.timeout(KILL_PATIENCE_S):
                return StopProof(ref, await self._kill(ref))
        except TimeoutError:
            raise StopUnprovenError(
                f"task {ref} was killed and Docker has not seen it end {KILL_PATIENCE_S:g}s "
                f"later. Ask again, or terminate the instance"
            ) from None

    async def _kill(self, ref: TaskRef) -> TaskExit:
        """Kill until it has ended: a container that is only being started does not hear it yet."""
        while True:
            await self.signal(ref, SIGKILL)
            try:
                async with asyncio.timeout(KILL_AGAIN_S):
                    return await self.wait(ref)
            except TimeoutError:
                continue

    async def wait(self, ref: TaskRef) -> TaskExit:
        with self._deaths.watched() as death:
            while True:
                death.clear()
                status = await self.status(ref)
                if status.exit is not None:
                    return status.exit
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(RECHECK_S):
                        await death.wait()

    async def status(self, ref: TaskRef) -> TaskStatus:
        check_home(ref, self._home)
        if ref in self._never_started:
            return self._never_started[ref]
        info = await self._inspect(ref)
        status = containers.status_of(info)
        if status.phase is TaskPhase.STARTING and ref not in self._starting:
            return await self._seal(status)
        ended = status.exit
        if ended is None:
            return status
        return replace(status, exit=await self._understood(ended, info))

    async def _understood(self, ended: TaskExit, info: dict[str, Any]) -> TaskExit:
        """The end, with what the container's state alone does not say."""
        if ended.kind is ExitKind.SIGNALLED and ended.signal == SIGKILL:
            if await self._ran_out_of_memory(info):
                return replace(ended, kind=ExitKind.OOM_KILLED, detail="passed its memory limit")
        elif ended.code in NOT_EXECUTED:
            said = await self._engine.call(
                f"task {info['Name']}", lambda api: api.logs(info["Id"], tail=1)
            )
            if said.startswith(INIT_COMPLAINT):
                return TaskExit(
                    ExitKind.NEVER_STARTED, detail=said.decode(errors="replace").strip()
                )
        return ended

    async def _seal(self, status: TaskStatus) -> TaskStatus:
        """Say that a container that a dead worker made never ran.

        It is taken away first, so that a start still on its way to the engine cannot succeed.
        """
        await self._drop(status.ref)
        ended = TaskExit(ExitKind.NEVER_STARTED, detail="the worker ended before starting it")
        sealed = replace(status, phase=TaskPhase.ENDED, exit=ended)
        self._never_started[status.ref] = sealed
        return sealed

    async def _ran_out_of_memory(self, info: dict[str, Any]) -> bool:
        """Whether the engine reported it; its flag is set too late where the end came first."""
        state = info["State"]
        if state["OOMKilled"] or not info["HostConfig"]["Memory"]:
            return False
        finished_ms = containers.moment_ms(state["FinishedAt"])
        now_s = int(datetime.now(UTC).timestamp())
        since_s = finished_ms // 1000 - 60 if finished_ms else now_s - 60
        filters = {"container": info["Id"], "event": "oom"}

        def reported(api: Any) -> bool:
            return any(api.events(since=since_s, until=now_s, filters=filters, decode=True))

        return await self._engine.call("the engine's events", reported)

    async def adopt(self) -> Sequence[TaskStatus]:
        refs = {containers.ref_of(each["Labels"]) for each in await self._list()}
        found = []
        for ref in sorted(refs | set(self._never_started)):
            with contextlib.suppress(UnknownTaskError):  # removed while we looked
                found.append(await self.status(ref))
        return found

    async def remove(self, ref: TaskRef) -> None:
        status = await self.status(ref)
        if status.phase is not TaskPhase.ENDED:
            raise StillRunningError(f"task {ref} is {status.phase.value}: stop it before removing")
        if self._never_started.pop(ref, None) is None:
            await self._drop(ref)

    async def _drop(self, ref: TaskRef) -> None:
        name = containers.container_name(ref, self._home)

        def drop(api: Any) -> str | None:
            labels: dict[str, str] = api.inspect_container(name)["Config"]["Labels"]
            api.remove_container(name, v=True, force=True)
            return labels.get(containers.NETWORK)

        with contextlib.suppress(NotFoundError):
            network = await self._engine.call(f"task {ref}", drop)
            if network is not None:
                await self._networks.drop_if_unused(network)

    async def _inspect(self, ref: TaskRef) -> dict[str, Any]:
        name = containers.container_name(ref, self._home)
        try:
            info: dict[str, Any] = await self._engine.call(
                f"task {ref}", lambda api: api.inspect_container(name)
            )
        except NotFoundError:
            raise UnknownTaskError(ref) from None
        return info

    async def close(self) -> None:
        await self._deaths.close()
        await self._engine.close()

    # -------------------------------------------------------------------------------------- logs
    async def logs(
        self, ref: TaskRef, cursor: LogCursor = LOG_START, *, follow: bool = True
    ) -> AsyncIterator[LogChunk]:
        """Output from the engine's log.

        The cursor is the time of a line, as the engine prints it, and how many lines of that time
        were seen. Times have a fixed width, so they compare as text.
        """
        check_home(ref, self._home)
        if ref in self._never_started:
            return
        await self._inspect(ref)
        name = containers.container_name(ref, self._home)
        seen, _, count = cursor.partition("/")
        to_skip, number = int(count or 0), 0
        since = int(datetime.fromisoformat(seen).timestamp()) if seen else None

        def begin(api: Any) -> Any:
            return api.logs(name, stream=True, follow=follow, timestamps=True, since=since)

        last = ""
        async with aclosing(self._engine.stream(f"output of {ref}", begin)) as frames:
            async for frame in frames:
                stamp, _, data = frame.partition(b" ")
                moment = stamp.decode()
                number = number + 1 if moment == last else 1
                last = moment
                if moment < seen or (moment == seen and number <= to_skip):
                    continue
                yield LogChunk(data, LogCursor(f"{moment}/{number}"))
