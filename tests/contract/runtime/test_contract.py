"""What every runtime promises, checked against processes, containers and the fake alike."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import aclosing
from typing import Any, cast

import pytest

from eva.model.errors import EvaError
from eva.model.ids import TaskId
from eva.ports.runtime import (
    LOG_START,
    ExitKind,
    Limits,
    LogCursor,
    NoSuchDeviceError,
    StaleEpochError,
    StillRunningError,
    TaskPhase,
    TaskRef,
    TaskRuntime,
    UnknownTaskError,
)
from tests.contract.runtime.bench import MEMORY_MIB, OTHER_INSTANCE, Bench

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

GRACE_MS = 10_000


async def output(
    runtime: TaskRuntime, ref: TaskRef, cursor: LogCursor = LOG_START, *, follow: bool = True
) -> bytes:
    chunks = [chunk.data async for chunk in runtime.logs(ref, cursor, follow=follow)]
    return b"".join(chunks)


async def until_printed(
    runtime: TaskRuntime, ref: TaskRef, text: bytes, cursor: LogCursor = LOG_START
) -> LogCursor:
    """Follow the output until it holds `text`; the cursor behind it."""
    seen = b""
    # Generators, all of them; the port promises no more than iterators.
    async with aclosing(cast("Any", runtime.logs(ref, cursor))) as chunks:
        async for chunk in chunks:
            seen += chunk.data
            if text in seen:
                return cast("LogCursor", chunk.cursor)
    raise AssertionError(f"ended without printing {text!r}: {seen!r}")


# ------------------------------------------------------------------------------------- how it ends
@pytest.mark.parametrize(
    ("program", "kind", "code", "number"),
    [
        ("succeeds", ExitKind.EXITED, 0, None),
        ("exits 3", ExitKind.EXITED, 3, None),
        ("kills itself", ExitKind.SIGNALLED, None, 9),
        ("cannot be executed", ExitKind.NEVER_STARTED, None, None),
    ],
)
async def test_ends_are_told_apart(
    bench: Bench, program: str, kind: ExitKind, code: int | None, number: int | None
) -> None:
    runtime = bench.open()
    await runtime.start(await bench.launch(runtime, program))
    end = await runtime.wait(bench.ref())
    assert (end.kind, end.code, end.signal) == (kind, code, number)
    assert end.succeeded == (code == 0)
    assert (await runtime.status(bench.ref())).exit == end


async def test_a_task_over_its_memory_limit_is_said_to_be_so(bench: Bench) -> None:
    runtime = bench.open()
    limits = Limits(memory_mib=MEMORY_MIB)
    await runtime.start(await bench.launch(runtime, "eats memory", limits=limits))
    assert (await runtime.wait(bench.ref())).kind is ExitKind.OOM_KILLED


# ------------------------------------------------------------------------------------------ starts
async def test_starting_twice_is_starting_once(bench: Bench) -> None:
    runtime = bench.open()
    launch = await bench.launch(runtime, "succeeds")
    await asyncio.gather(runtime.start(launch), runtime.start(launch))
    await runtime.wait(launch.ref)
    again = await runtime.start(launch)
    assert again.phase is TaskPhase.ENDED
    assert await output(runtime, launch.ref) == b"one\ntwo\nthree\n"


async def test_a_newer_epoch_waits_for_the_older_and_then_shuts_it_out(bench: Bench) -> None:
    runtime = bench.open()
    first, second = bench.ref(epoch=1), bench.ref(epoch=2)
    await runtime.start(await bench.launch(runtime, "waits", first))
    with pytest.raises(StillRunningError, match="epoch 1 is still running"):
        await runtime.start(await bench.launch(runtime, "waits", second))
    await runtime.stop(first, 0)
    await runtime.start(await bench.launch(runtime, "waits", second))
    await runtime.remove(first)
    with pytest.raises(StaleEpochError, match="epoch 2 has been started"):
        await runtime.start(await bench.launch(runtime, "waits", first))


async def test_an_epoch_that_never_started_does_not_stand_in_the_way(bench: Bench) -> None:
    runtime = bench.open()
    first, second = bench.ref(epoch=1), bench.ref(epoch=2)
    await runtime.start(await bench.launch(runtime, "cannot be executed", first))
    assert (await runtime.wait(first)).kind is ExitKind.NEVER_STARTED
    await runtime.start(await bench.launch(runtime, "exits 3", second))
    assert (await runtime.wait(second)).code == 3


async def test_stopping_in_the_middle_of_a_start_ends_it(bench: Bench) -> None:
    runtime = bench.open()
    launch = await bench.launch(runtime, "waits")
    starting = asyncio.create_task(runtime.start(launch))
    while True:
        try:
            proof = await runtime.stop(launch.ref, 100)
            break
        except UnknownTaskError:
            await asyncio.sleep(0)
    await starting
    assert (proof.exit.code, proof.exit.signal) in {(143, None), (None, 15), (None, 9)}
    assert (await runtime.status(launch.ref)).exit == proof.exit


async def test_a_cpu_that_is_not_there_is_an_error_and_starts_nothing(bench: Bench) -> None:
    runtime = bench.open()
    launch = await bench.launch(runtime, "waits", cpus=((os.cpu_count() or 1) + 7,))
    with pytest.raises(NoSuchDeviceError):
        await runtime.start(launch)
    with pytest.raises(UnknownTaskError):
        await runtime.status(launch.ref)


@pytest.mark.parametrize("task", ["../up.0", "sp ace/ünï.0", ".hidden.0", "a" * 100 + ".0"])
async def test_any_task_id_is_a_good_one(bench: Bench, task: str) -> None:
    runtime = bench.open()
    ref = bench.ref(task)
    await runtime.start(await bench.launch(runtime, "exits 3", ref))
    assert (await runtime.wait(ref)).code == 3
    assert [status.ref for status in await bench.open().adopt()] == [ref]


# ------------------------------------------------------------------------------------------- stops
async def test_stop_lets_a_task_save_its_work(bench: Bench) -> None:
    runtime = bench.open()
    ref = bench.ref()
    await runtime.start(await bench.launch(runtime, "checkpoints on TERM"))
    await until_printed(runtime, ref, b"ready\n")
    proof = await runtime.stop(ref, GRACE_MS)
    assert proof.ref == ref
    assert proof.exit.succeeded
    assert b"checkpoint\n" in await output(runtime, ref)


async def test_a_shell_waits_for_the_program_that_saves_below_it(bench: Bench) -> None:
    runtime = bench.open()
    ref = bench.ref()
    await runtime.start(await bench.launch(runtime, "checkpoints below a shell"))
    await until_printed(runtime, ref, b"ready\n")
    proof = await runtime.stop(ref, GRACE_MS)
    # Shells report it as code or as signal: both say that it ended as it was asked to.
    assert (proof.exit.code, proof.exit.signal) in {(143, None), (None, 15)}
    printed = await output(runtime, ref)
    assert b"checkpoint\n" in printed
    assert b"never" not in printed


async def test_stop_kills_a_task_that_does_not_listen(bench: Bench) -> None:
    runtime = bench.open()
    ref = bench.ref()
    await runtime.start(await bench.launch(runtime, "ignores TERM"))
    await until_printed(runtime, ref, b"ready\n")
    proof = await runtime.stop(ref, 50)
    assert (proof.exit.kind, proof.exit.signal) == (ExitKind.SIGNALLED, 9)


async def test_stopping_what_has_ended_proves_the_same_end(bench: Bench) -> None:
    runtime = bench.open()
    await runtime.start(await bench.launch(runtime, "exits 3"))
    end = await runtime.wait(bench.ref())
    await runtime.signal(bench.ref(), signal.SIGTERM)
    assert (await runtime.stop(bench.ref(), 0)).exit == end


async def test_a_checkpoint_request_leaves_the_task_running(bench: Bench) -> None:
    runtime = bench.open()
    ref = bench.ref()
    await runtime.start(await bench.launch(runtime, "checkpoints on USR1"))
    cursor = await until_printed(runtime, ref, b"ready\n")
    for _ in range(2):
        await runtime.signal(ref, signal.SIGUSR1)
        cursor = await until_printed(runtime, ref, b"checkpoint\n", cursor)
    assert (await runtime.status(ref)).phase is TaskPhase.RUNNING


# ---------------------------------------------------------------------------------------- restarts
async def test_a_new_worker_finds_what_runs_and_what_ended_meanwhile(bench: Bench) -> None:
    before = bench.open()
    runs, ends = bench.ref("runs.0", 4), bench.ref("ends.0", 2)
    labels = {"attempt": "x=1, y"}
    await before.start(await bench.launch(before, "waits", runs, labels=labels))
    await before.start(await bench.launch(before, "ends soon", ends))
    cursor = await until_printed(before, runs, b"ready\n")
    await before.close()

    after = bench.open()
    assert (await after.wait(ends)).code == 7
    found = {status.ref: status for status in await after.adopt()}
    assert list(found) == sorted([runs, ends])
    assert found[runs].phase is TaskPhase.RUNNING
    assert found[runs].labels == labels
    assert found[ends].exit is not None
    assert await output(after, runs, cursor, follow=False) == b""
    await after.stop(runs, 0)


async def test_workers_on_one_machine_keep_to_their_own(bench: Bench) -> None:
    mine, other = bench.open(), bench.open(OTHER_INSTANCE)
    await mine.start(await bench.launch(mine, "waits"))
    assert list(await other.adopt()) == []
    with pytest.raises(UnknownTaskError):
        await other.stop(bench.ref(), 0)
    assert (await mine.status(bench.ref())).phase is TaskPhase.RUNNING


async def test_an_end_is_kept_until_it_is_acknowledged(bench: Bench) -> None:
    runtime = bench.open()
    ref = bench.ref()
    await runtime.start(await bench.launch(runtime, "waits"))
    with pytest.raises(StillRunningError):
        await runtime.remove(ref)
    await runtime.stop(ref, 0)
    assert [status.ref for status in await bench.open().adopt()] == [ref]
    await runtime.remove(ref)
    assert list(await bench.open().adopt()) == []


async def test_a_task_that_was_never_here_is_unknown(bench: Bench) -> None:
    runtime = bench.open()
    for stranger in (bench.ref("none.0"), TaskRef("another", TaskId("job.0"), 1)):
        for call in (
            runtime.status(stranger),
            runtime.wait(stranger),
            runtime.stop(stranger, 0),
            runtime.signal(stranger, 15),
            runtime.remove(stranger),
            output(runtime, stranger),
        ):
            with pytest.raises(UnknownTaskError) as raised:
                await call
            assert isinstance(raised.value, EvaError)


# -------------------------------------------------------------------------------------------- logs
async def test_output_is_whole_and_resumes_after_every_chunk(bench: Bench) -> None:
    runtime = bench.open()
    ref = bench.ref()
    await runtime.start(await bench.launch(runtime, "succeeds"))
    await runtime.wait(ref)
    whole = b"one\ntwo\nthree\n"
    seen = b""
    async for chunk in runtime.logs(ref):
        seen += chunk.data
        for follow in (True, False):
            assert seen + await output(runtime, ref, chunk.cursor, follow=follow) == whole
    assert seen == whole


async def test_following_ends_with_the_task(bench: Bench) -> None:
    runtime = bench.open()
    ref = bench.ref()
    await runtime.start(await bench.launch(runtime, "waits"))
    follower = asyncio.create_task(output(runtime, ref))
    await until_printed(runtime, ref, b"ready\n")
    assert not follower.done()
    await runtime.stop(ref, 0)
    assert (await follower).startswith(b"ready\n")  # shells add that they were terminated
