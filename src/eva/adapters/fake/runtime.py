"""A runtime without processes: programs are scripts of what they print and how they end.

The machine outlives the runtimes on it, as a real one outlives its worker, so a simulated worker
can be killed and come back to what it left. It keeps the same contract as the real runtimes, by the
same suite. There is no chance in it, and time is the event loop's: under a virtual clock a grace
period costs nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from signal import SIGKILL, SIGTERM

from eva.model.errors import EvaError
from eva.model.units import MS_PER_SECOND
from eva.ports.runtime import (
    LOG_START,
    Argv,
    ExitKind,
    Home,
    LogChunk,
    LogCursor,
    NoSuchDeviceError,
    Preparation,
    Prepared,
    RuntimeTraits,
    StillRunningError,
    StopProof,
    TaskExit,
    TaskLaunch,
    TaskPhase,
    TaskRef,
    TaskStatus,
    UnknownTaskError,
    check_epochs,
    check_home,
)

TRAITS = RuntimeTraits("fake", images=True, mounts=True, networks=True, hard_limits=True)


@dataclass(frozen=True, slots=True)
class Reaction:
    """What a program does when it gets a signal: print, and end or go on."""

    output: bytes = b""
    exit: TaskExit | None = None


@dataclass(frozen=True, slots=True)
class FakeProgram:
    """A program as a script. `exit` None runs until a signal, or until the test finishes it."""

    output: tuple[bytes, ...] = ()
    exit: TaskExit | None = None
    after_ms: int = 0
    reactions: Mapping[int, Reaction] = field(default_factory=dict)


@dataclass
class FakeTask:
    """A task on the machine."""

    home: Home
    launch: TaskLaunch
    program: FakeProgram
    output: bytearray = field(default_factory=bytearray)
    exit: TaskExit | None = None
    watchers: set[asyncio.Event] = field(default_factory=set)

    def status(self) -> TaskStatus:
        phase = TaskPhase.RUNNING if self.exit is None else TaskPhase.ENDED
        return TaskStatus(self.launch.ref, phase, self.exit, dict(self.launch.labels))

    def changed(self) -> None:
        for watcher in self.watchers:
            watcher.set()

    @contextlib.asynccontextmanager
    async def watch(self) -> AsyncIterator[asyncio.Event]:
        watcher = asyncio.Event()
        self.watchers.add(watcher)
        try:
            yield watcher
        finally:
            self.watchers.discard(watcher)


class FakeMachine:
    """What is there whether or not a worker is. Tests and simulations steer it here.

    A launch finds its program by the first word of its argv; one without a program runs until it
    is finished or signalled.
    """

    def __init__(
        self,
        programs: Mapping[str, FakeProgram] | None = None,
        cpus: int = 64,
        gpus: frozenset[str] | None = None,
    ) -> None:
        self.programs = dict(programs or {})
        self.cpus = cpus
        self.gpus = gpus
        self.tasks: dict[TaskRef, FakeTask] = {}
        self.prepared: list[Preparation] = []
        self._refusals: dict[str, deque[EvaError]] = {}

    def refuse_next(self, call: str, error: EvaError) -> None:
        """Let the next `prepare`, `start`, `stop` or `signal` fail with this error."""
        self._refusals.setdefault(call, deque()).append(error)

    def check_refusal(self, call: str) -> None:
        waiting = self._refusals.get(call)
        if waiting:
            raise waiting.popleft()

    def write(self, ref: TaskRef, data: bytes) -> None:
        """Let a running task print."""
        task = self.tasks[ref]
        task.output += data
        task.changed()

    def finish(self, ref: TaskRef, end: TaskExit) -> None:
        """Let a running task end; one that has ended stays as it is."""
        task = self.tasks.get(ref)
        if task is not None and task.exit is None:
            task.exit = end
            task.changed()

    def begin(self, home: Home, launch: TaskLaunch) -> None:
        words = launch.program.words if isinstance(launch.program, Argv) else ("",)
        program = self.programs.get(words[0], FakeProgram())
        task = FakeTask(home, launch, program, bytearray(b"".join(program.output)))
        self.tasks[launch.ref] = task
        if program.exit is None:
            return
        if program.after_ms == 0:
            task.exit = program.exit
        else:
            asyncio.get_running_loop().call_later(
                program.after_ms / MS_PER_SECOND, self.finish, launch.ref, program.exit
            )

    def deliver(self, ref: TaskRef, number: int) -> None:
        task = self.tasks[ref]
        if task.exit is not None:
            return
        killed = Reaction(exit=TaskExit(ExitKind.SIGNALLED, signal=int(number)))
        reaction = task.program.reactions.get(number, killed) if number != SIGKILL else killed
        task.output += reaction.output
        task.exit = reaction.exit
        task.changed()


class FakeRuntime:
    def __init__(self, home: Home, machine: FakeMachine) -> None:
        self._home = home
        self._machine = machine

    @property
    def home(self) -> Home:
        return self._home

    @property
    def traits(self) -> RuntimeTraits:
        return TRAITS

    async def prepare(self, preparation: Preparation) -> Prepared:
        self._machine.check_refusal("prepare")
        built = preparation not in self._machine.prepared
        if built:
            self._machine.prepared.append(preparation)
        return Prepared(None if preparation.image is None else repr(preparation.image), built)

    async def start(self, launch: TaskLaunch) -> TaskStatus:
        ref = launch.ref
        check_home(ref, self._home)
        self._machine.check_refusal("start")
        known = self._machine.tasks.get(ref)
        if known is not None:
            return known.status()
        siblings = [task for task in self._mine() if task.launch.ref.task == ref.task]
        check_epochs(ref, [task.status() for task in siblings])
        self._check_devices(launch)
        self._machine.begin(self._home, launch)
        return self._known(ref).status()

    def _check_devices(self, launch: TaskLaunch) -> None:
        cpus = [cpu for cpu in launch.cpus if cpu >= self._machine.cpus]
        known = self._machine.gpus
        gpus = [] if known is None else sorted(set(launch.gpus) - known)
        if cpus or gpus:
            raise NoSuchDeviceError(
                f"task {launch.ref} is to run on CPUs {cpus} and GPUs {gpus}, which this machine "
                f"does not have: correct the worker's devices"
            )

    async def signal(self, ref: TaskRef, number: int) -> None:
        self._known(ref)
        self._machine.check_refusal("signal")
        self._machine.deliver(ref, number)

    async def stop(self, ref: TaskRef, grace_ms: int, number: int = SIGTERM) -> StopProof:
        self._known(ref)
        self._machine.check_refusal("stop")
        self._machine.deliver(ref, number)
        try:
            async with asyncio.timeout(grace_ms / MS_PER_SECOND):
                return StopProof(ref, await self.wait(ref))
        except TimeoutError:
            self._machine.deliver(ref, SIGKILL)
            return StopProof(ref, await self.wait(ref))

    async def status(self, ref: TaskRef) -> TaskStatus:
        return self._known(ref).status()

    async def wait(self, ref: TaskRef) -> TaskExit:
        task = self._known(ref)
        async with task.watch() as change:
            while task.exit is None:
                await change.wait()
                change.clear()
        return task.exit

    async def logs(
        self, ref: TaskRef, cursor: LogCursor = LOG_START, *, follow: bool = True
    ) -> AsyncIterator[LogChunk]:
        task = self._known(ref)
        offset = int(cursor or 0)
        async with task.watch() as change:
            while True:
                data = bytes(task.output[offset:])
                if data:
                    offset += len(data)
                    yield LogChunk(data, LogCursor(str(offset)))
                elif not follow or task.exit is not None:
                    return
                else:
                    await change.wait()
                    change.clear()

    async def adopt(self) -> Sequence[TaskStatus]:
        statuses = [task.status() for task in self._mine()]
        return sorted(statuses, key=lambda status: status.ref)

    async def remove(self, ref: TaskRef) -> None:
        if self._known(ref).exit is None:
            raise StillRunningError(f"task {ref} is running: stop it before removing")
        del self._machine.tasks[ref]

    async def close(self) -> None:
        """Nothing is held: the machine has it all."""

    def _mine(self) -> list[FakeTask]:
        return [task for task in self._machine.tasks.values() if task.home == self._home]

    def _known(self, ref: TaskRef) -> FakeTask:
        check_home(ref, self._home)
        task = self._machine.tasks.get(ref)
        if task is None or task.home != self._home:
            raise UnknownTaskError(ref)
        return task
