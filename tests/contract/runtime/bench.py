"""What the contract suite needs of each runtime: adapters on one machine, and programs for it.

A program that really runs is shell; the fake is told what such a program would do.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eva.adapters.fake.runtime import FakeMachine, FakeProgram, FakeRuntime, Reaction
from eva.adapters.process.runtime import ProcessRuntime
from eva.model.ids import InstanceId, TaskId
from eva.ports.runtime import (
    Argv,
    ExitKind,
    Home,
    ImageReference,
    Preparation,
    Script,
    TaskExit,
    TaskLaunch,
    TaskRef,
    TaskRuntime,
)

MEMORY_MIB = 48  # of the program that eats more
OTHER_INSTANCE = InstanceId("i-other")


@dataclass
class Bench:
    """`open` makes one more adapter on the same machine, as a restarted worker would."""

    name: str
    home: Home
    make: Callable[[Home], TaskRuntime]
    programs: dict[str, Argv | Script]
    image: str | None = None
    opened: list[TaskRuntime] = field(default_factory=list)

    @property
    def real(self) -> bool:
        return self.name != "fake"

    def open(self, instance: InstanceId | None = None) -> TaskRuntime:
        home = self.home if instance is None else Home(self.home.cluster, instance)
        self.opened.append(self.make(home))
        return self.opened[-1]

    def ref(self, task: str = "job.0", epoch: int = 1) -> TaskRef:
        return TaskRef(self.home.cluster, TaskId(task), epoch)

    @property
    def preparation(self) -> Preparation:
        return Preparation(None if self.image is None else ImageReference(self.image))

    async def launch(
        self,
        runtime: TaskRuntime,
        program: str | Argv | Script,
        ref: TaskRef | None = None,
        **more: Any,  # fields of TaskLaunch, by name
    ) -> TaskLaunch:
        prepared = await runtime.prepare(self.preparation)
        chosen = self.programs[program] if isinstance(program, str) else program
        return TaskLaunch(ref or self.ref(), chosen, prepared, **more)


SHELL: dict[str, Argv | Script] = {
    "succeeds": Script("echo one; echo two; echo three"),
    "exits 3": Script("exit 3"),
    "kills itself": Script("kill -9 $$"),
    "waits": Script("echo ready; sleep 1000"),
    "ends soon": Script("sleep 0.3; exit 7"),
    "ignores TERM": Script("trap '' TERM; echo ready; while :; do sleep 1000 || :; done"),
    "checkpoints on TERM": Script(
        "trap 'sleep 0.2; echo checkpoint; exit 0' TERM; echo ready\n"
        "while :; do sleep 0.05 || :; done"
    ),
    "checkpoints on USR1": Script(
        "trap 'echo checkpoint' USR1; echo ready; while :; do sleep 0.05 || :; done"
    ),
    # The shell is the parent here, and must not die before the program below it has saved.
    "checkpoints below a shell": Script(
        'sh -c \'trap "sleep 0.3; echo checkpoint; exit 0" TERM; echo ready;'
        " while :; do sleep 0.05 || :; done'\necho never"
    ),
    "eats memory": Script("x=a; while :; do x=$x$x; done"),
    "cannot be executed": Argv(("/no/such/program", "argument")),
}

READY = b"ready\n"
CHECKPOINT = b"checkpoint\n"
DONE = TaskExit(ExitKind.EXITED, 0)
FAKES: dict[str, FakeProgram] = {
    "succeeds": FakeProgram((b"one\n", b"two\n", b"three\n"), DONE),
    "exits 3": FakeProgram(exit=TaskExit(ExitKind.EXITED, 3)),
    "kills itself": FakeProgram(exit=TaskExit(ExitKind.SIGNALLED, signal=9)),
    "waits": FakeProgram((READY,)),
    "ends soon": FakeProgram(exit=TaskExit(ExitKind.EXITED, 7), after_ms=30),
    "ignores TERM": FakeProgram((READY,), reactions={signal.SIGTERM: Reaction()}),
    "checkpoints on TERM": FakeProgram(
        (READY,), reactions={signal.SIGTERM: Reaction(CHECKPOINT, DONE)}
    ),
    "checkpoints on USR1": FakeProgram((READY,), reactions={signal.SIGUSR1: Reaction(CHECKPOINT)}),
    "checkpoints below a shell": FakeProgram(
        (READY,),
        reactions={signal.SIGTERM: Reaction(CHECKPOINT, TaskExit(ExitKind.EXITED, 143))},
    ),
    "eats memory": FakeProgram(exit=TaskExit(ExitKind.OOM_KILLED, signal=9)),
    "cannot be executed": FakeProgram(exit=TaskExit(ExitKind.NEVER_STARTED, detail="no such file")),
}


def process_bench(home: Home, folder: Path) -> Bench:
    return Bench("process", home, lambda of: ProcessRuntime(of, folder), SHELL)


def fake_bench(home: Home) -> Bench:
    machine = FakeMachine(FAKES, cpus=os.cpu_count() or 1)
    programs: dict[str, Argv | Script] = {name: Argv((name,)) for name in FAKES}
    return Bench("fake", home, lambda of: FakeRuntime(of, machine), programs)


def docker_bench(home: Home, folder: Path, image: str) -> Bench:
    from eva.adapters.docker.runtime import DockerRuntime  # noqa: PLC0415 - an extra of the package

    return Bench("docker", home, lambda of: DockerRuntime(of, folder), SHELL, image)


async def clear(bench: Bench) -> None:
    """Stop and remove all that a test has started, through the port.

    Looked at again after a removal: an engine may still be creating for a worker that was killed.
    """
    for instance in (bench.home.instance, OTHER_INSTANCE):
        runtime = bench.open(instance)
        for _ in range(5):
            left = await runtime.adopt()
            if not left:
                break
            for status in left:
                await runtime.stop(status.ref, 0)
                await runtime.remove(status.ref)
        assert list(await runtime.adopt()) == []
    await asyncio.gather(*(runtime.close() for runtime in bench.opened))
