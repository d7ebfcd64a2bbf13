"""One copy, carried out: launched, listened to, stopped, and its files brought to safety.

All of it can begin in the middle, because a worker that restarts finds its tasks as they are.
Whatever happens is put to the state machine as a stimulus; nothing is decided here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import structlog
from eva_iterator.errors import CheckpointError, ProtocolError
from eva_iterator.manifest import MANIFEST_NAME, checkpoint_path, latest_complete
from eva_iterator.protocol import UNASKED, Answer, Checkpointed, TaskChannel

from eva.adapters.machine import discard
from eva.model.errors import CapacityError, EvaError, InputError, OperatorError, TryAgainError
from eva.ports.runtime import (
    ExitKind,
    ImageBuild,
    ImageReference,
    Preparation,
    TaskExit,
    TaskRef,
    UnknownTaskError,
)
from eva.ports.storage import (
    Checkpoint,
    CheckpointIncompleteError,
    Placement,
    Retention,
    Storage,
    TaskFolders,
    WorkdirDigest,
)
from eva.ports.workers import DockerfileBuild, StartOrder, TaskRun, TaskSample
from eva.worker import stimuli as st
from eva.worker.devices import Devices
from eva.worker.environment import socket_folder, task_launch
from eva.worker.progress import OutputProgress, pattern_problem
from eva.worker.settings import WorkerSettings
from eva.worker.sockets import TaskSocket
from eva.worker.stimuli import Ref, Stimulus

RETRY_S = 1.0  # between attempts at what does not depend on us: storage, a stuck process
OPERATOR_ATTEMPTS = 5  # where only a person can help, a task's resources are not held for ever
CLOCK_SLACK_MS = 1_000  # file systems and shells that count in seconds
LAST_WORDS_S = 5.0  # for the output of an ended task to be read to its end

T = TypeVar("T")

_log = structlog.get_logger("eva.worker")


async def prepare(settings: WorkerSettings, run: TaskRun) -> Preparation:
    """The preparation of a run, with its build context fetched."""
    image: ImageReference | ImageBuild | None = None
    match run.image:
        case ImageReference():
            image = run.image
        case DockerfileBuild(dockerfile, build_args) if run.workdir is not None:
            context = settings.state / "contexts" / run.workdir
            await asyncio.to_thread(_fetch, settings.storage, run.workdir, context)
            image = ImageBuild(context, dockerfile, build_args)
        case DockerfileBuild():
            raise InputError.single("dockerfile", "needs a workdir to build in: set `workdir`")
    return Preparation(image)


def _fetch(storage: Storage, digest: WorkdirDigest, target: Path) -> None:
    """Whole or not at all: what is there already is complete."""
    if target.exists():
        return
    partial = target.with_name(f".{target.name}.partial")
    discard(partial)
    partial.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    storage.fetch_workdir(digest, partial)
    partial.rename(target)


class LocalTask:
    """`put` gives a stimulus to the state machine."""

    def __init__(
        self,
        settings: WorkerSettings,
        order: StartOrder,
        put: Callable[[Stimulus | BaseException], None],
    ) -> None:
        self.order = order
        self.ref = Ref(order.task, order.epoch)
        self.channel = TaskChannel(max(1, order.run.window_ms))
        self._settings = settings
        self._put = put
        self._runtime_ref = TaskRef(settings.runtime.home.cluster, order.task, order.epoch)
        self._placement = Placement(order.job, order.task, order.epoch)
        name = f"{order.task}.{order.epoch}"
        self._scratch = settings.state / "scratch" / name
        self._workdir = settings.state / "workdirs" / name
        self._socket = TaskSocket(
            socket_folder(settings.state, order),
            self.channel,
            settings.clock,
            self._hear,
            lambda: put(st.Listens(self.ref)),
        )
        self._parts: dict[str, asyncio.Task[None]] = {}
        self._told: TaskSample | None = None

    # Beginning

    def launch(self, devices: Devices) -> None:
        self._begin("launch", self._launch(devices))

    def call_off(self) -> None:
        """Cut a launch short. One that has reached the runtime is not cut but stopped after."""
        launching = self._parts.get("launch")
        if launching is not None:
            launching.cancel()

    async def _launch(self, devices: Devices) -> None:
        try:
            await self._start(devices)
        except asyncio.CancelledError:
            self._put(st.LaunchFailed(self.ref, "called off", infrastructure=True))
        except InputError as error:
            self._put(st.LaunchFailed(self.ref, str(error), infrastructure=False))
        except (EvaError, OSError) as error:
            self._put(st.LaunchFailed(self.ref, str(error), infrastructure=True))

    async def _start(self, devices: Devices) -> None:
        settings, order, run = self._settings, self.order, self.order.run
        problem = pattern_problem(run.progress_regex) if run.progress_regex else None
        if problem is not None:
            raise InputError.single(order.task, problem)
        prepared = await settings.runtime.prepare(await prepare(settings, run))
        if run.workdir is not None:
            await asyncio.to_thread(_fetch, settings.storage, run.workdir, self._workdir)
        folders = await self._open_storage()
        await self._socket.serve()
        launch = task_launch(
            self._runtime_ref,
            order,
            devices,
            prepared,
            folders,
            self._workdir if run.workdir is not None else None,
            self._socket.folder,
            settings.runtime.traits,
        )
        # Not cut short once begun: whoever calls the launch off must know whether it runs.
        starting = asyncio.ensure_future(settings.runtime.start(launch))
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(starting)
        await starting
        self._put(st.Launched(self.ref))
        self._watch()

    async def _open_storage(self) -> TaskFolders:
        self._scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        return await asyncio.to_thread(
            self._settings.storage.open_task, self._placement, self._scratch
        )

    # Sockets, output, end

    async def attend(self) -> None:
        """Listen to a task that was started before this worker was."""
        await self._socket.serve()
        self._watch()

    def _watch(self) -> None:
        if self.order.run.progress_regex:
            self._begin("progress", self._follow_output(self.order.run.progress_regex))
        self._begin("watch", self._wait())

    async def _follow_output(self, pattern: str) -> None:
        settings = self._settings
        progress = OutputProgress(pattern, self.channel, settings.runtime, settings.clock)
        with contextlib.suppress(UnknownTaskError):
            await progress.follow(self._runtime_ref)

    async def _wait(self) -> None:
        """Until the end, whatever the runtime says on the way."""
        while True:
            try:
                end = await self._settings.runtime.wait(self._runtime_ref)
                break
            except UnknownTaskError as error:
                end = TaskExit(ExitKind.LOST, detail=str(error))
                break
            except EvaError as error:
                _log.warning(
                    "cannot watch a task; trying again", task=str(self.ref), why=str(error)
                )
                await asyncio.sleep(RETRY_S)
        reading = self._parts.get("progress")
        if reading is not None:
            await asyncio.wait({reading}, timeout=LAST_WORDS_S)
            reading.cancel()
        self._put(st.Ended(self.ref, end, self.channel.steps))

    def _hear(self, answer: Answer) -> None:
        if answer.request == UNASKED and isinstance(answer, Checkpointed):
            self._begin("publish", self._publish_aside(answer.name))
        elif isinstance(answer, Checkpointed):
            self._put(st.Answered(self.ref, answer.name))
        else:
            self._put(st.Declined(self.ref, answer.reason))

    async def _publish_aside(self, name: str) -> None:
        """A checkpoint that the task made of itself, for a worse day; it runs on meanwhile."""
        try:
            await asyncio.to_thread(self._publish, st.Settle(self.ref, publish=True, name=name))
        except EvaError as error:
            _log.warning("a regular checkpoint is not kept", task=str(self.ref), why=str(error))

    def sample(self) -> TaskSample | None:
        """How the task fares, if that is news."""
        rate = self.channel.rate(self._settings.clock())
        sample = TaskSample(*self.ref, self.channel.steps, rate)
        if sample == self._told or (sample.steps is None and self._told is None):
            return None
        self._told = sample
        return sample

    def forget_told(self) -> None:
        """A new master, or the old one with nothing in its hands: tell all anew."""
        self._told = None

    # Checkpoint and stop

    def ask_checkpoint(self, request: int, grace_ms: int) -> None:
        self.channel.request_checkpoint(request, max(1, -(-grace_ms // 1_000)))
        self._socket.flush()

    def cancel_checkpoint(self) -> None:
        self.channel.cancel_checkpoint()
        self._socket.flush()

    def signal(self, number: int) -> None:
        self._begin("signal", self._signal(number))

    async def _signal(self, number: int) -> None:
        try:
            await self._settings.runtime.signal(self._runtime_ref, number)
        except EvaError as error:
            self._put(st.Declined(self.ref, f"it could not be signalled: {error}"))

    def stop(self, number: int, grace_ms: int) -> None:
        self._begin("stop", self._stop(number, grace_ms))

    async def _stop(self, number: int, grace_ms: int) -> None:
        """Until it is proven; the end itself is told by `_wait`."""
        while True:
            try:
                await self._settings.runtime.stop(self._runtime_ref, grace_ms, number)
                return
            except UnknownTaskError:
                return
            except EvaError as error:
                _log.warning(
                    "a task does not stop; trying again", task=str(self.ref), why=str(error)
                )
                await asyncio.sleep(RETRY_S)

    # Files

    def settle(self, how: st.Settle) -> None:
        self._begin("settle", self._settle(how))

    async def _settle(self, how: st.Settle) -> None:
        await self._socket.close()
        checkpoint, problem = None, ""
        if how.publish:
            try:
                checkpoint = await self._insist(lambda: self._publish(how))
            except (CheckpointIncompleteError, OperatorError, CapacityError) as error:
                problem = str(error)
        if self._scratch.exists():
            try:
                await self._insist(self._close)
            except EvaError as error:
                _log.error("a task's folders were not saved", task=str(self.ref), why=str(error))
                problem = problem or str(error)
        self._put(st.Settled(self.ref, checkpoint, problem))

    async def _insist(self, act: Callable[[], T]) -> T:
        """Do it in a thread, again and again while the storage is away."""
        attempts = 0
        while True:
            try:
                return await asyncio.to_thread(act)
            except (TryAgainError, OperatorError, CapacityError) as error:
                attempts += not isinstance(error, TryAgainError)
                if attempts >= OPERATOR_ATTEMPTS:
                    raise
                _log.warning("storage fails; trying again", task=str(self.ref), why=str(error))
                await asyncio.sleep(RETRY_S)

    def _publish(self, how: st.Settle) -> Checkpoint:
        storage = self._settings.storage
        folders = storage.open_task(self._placement, self._scratch)
        folder = _announced(folders.checkpoint_dir, how.name)
        if folder is None:
            raise CheckpointIncompleteError(
                f"{self.ref} left no complete checkpoint in $EVA_CHECKPOINT_DIR: was the manifest "
                "written?"
            )
        checkpoint = storage.publish_checkpoint(self._placement, folder)
        if _changed_ms(folder, checkpoint) + CLOCK_SLACK_MS < how.not_before_ms:
            raise CheckpointIncompleteError(
                f"the newest checkpoint of {self.ref} is older than the signal that asked for one"
            )
        return checkpoint

    def _close(self) -> None:
        storage, placement = self._settings.storage, self._placement
        storage.close_task(placement, self._scratch)
        now_ms = self._settings.clock()
        storage.prune(placement.job, placement.task, Retention(), now_ms, placement.epoch)

    # The end of it

    async def forget(self) -> None:
        """Remove every trace on this machine."""
        await self.close()
        with contextlib.suppress(UnknownTaskError):
            await self._settings.runtime.remove(self._runtime_ref)
        await self._socket.remove()
        await asyncio.to_thread(self._discard)

    def _discard(self) -> None:
        discard(self._workdir)
        discard(self._scratch)

    async def close(self) -> None:
        """Let go; the task runs on."""
        for part in self._parts.values():
            part.cancel()
        await asyncio.gather(*self._parts.values(), return_exceptions=True)
        self._parts.clear()
        await self._socket.close()

    def _begin(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """One at a time of each kind; an order that is repeated finds the first still at work."""
        running = self._parts.get(name)
        if running is not None and not running.done():
            work.close()
            return
        part = self._parts[name] = asyncio.create_task(work)
        part.add_done_callback(lambda done: report_failure(done, self._put))


def report_failure(
    done: asyncio.Task[None], put: Callable[[Stimulus | BaseException], None]
) -> None:
    """What nobody expected must not go unheard: the worker ends of it, and begins again."""
    error = None if done.cancelled() else done.exception()
    if error is not None:
        put(error)


def _changed_ms(folder: Path, checkpoint: Checkpoint) -> int:
    """When a checkpoint was made: by its own word, which it may leave out, or by its manifest."""
    return max(checkpoint.written_at_ms, int((folder / MANIFEST_NAME).stat().st_mtime * 1_000))


def _announced(folder: Path, name: str | None) -> Path | None:
    try:
        return latest_complete(folder) if name is None else checkpoint_path(folder, name)
    except (CheckpointError, ProtocolError) as error:
        raise CheckpointIncompleteError(str(error)) from error
