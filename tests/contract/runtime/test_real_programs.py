"""What only a program that really runs can tell: its arguments, its files, its CPUs, its worker."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eva.model.errors import InputError
from eva.ports.runtime import (
    Argv,
    ExitKind,
    LaunchRefusedError,
    Mount,
    Script,
    Staging,
    TaskExit,
    TaskPhase,
    TaskRuntime,
)
from tests.contract.runtime import worker_that_dies
from tests.contract.runtime.bench import Bench
from tests.support.requirements import REPOSITORY, require

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

NASTY = ("$HOME", "`id`", "$(id)", "a b", "'", '"', ";true", "*", "\\n", "-n", "ü\n!", "")


async def run(
    bench: Bench, runtime: TaskRuntime, program: Argv | Script, **more: Any
) -> tuple[TaskExit, bytes]:
    launch = await bench.launch(runtime, program, **more)
    await runtime.start(launch)
    end = await runtime.wait(launch.ref)
    return end, b"".join([chunk.data async for chunk in runtime.logs(launch.ref)])


async def test_arguments_reach_the_program_as_they_were_written(real_bench: Bench) -> None:
    program = Argv(("printf", "<%s>", *NASTY))
    end, printed = await run(real_bench, real_bench.open(), program)
    assert end.succeeded
    assert printed.decode() == "".join(f"<{word}>" for word in NASTY)


async def test_a_script_is_read_and_not_pasted_and_ends_at_the_first_failure(
    real_bench: Bench,
) -> None:
    text = """cat <<'END'\n'"$HOME"' `id` $(id) \\\nEND\nfalse\necho never"""
    end, printed = await run(real_bench, real_bench.open(), Script(text))
    assert end.code == 1
    assert printed == b"'\"$HOME\"' `id` $(id) \\\n"


async def test_the_environment_is_the_launch_and_not_the_workers(
    real_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the worker's own")
    env = {"EVA_RANK": "0", "SECRET": "a 'b' $c\nd"}
    end, printed = await run(real_bench, real_bench.open(), Argv(("env",)), env=env)
    assert end.succeeded
    assert b"EVA_RANK=0\nSECRET=a 'b' $c\nd\n" in printed
    assert b"the worker's own" not in printed


async def test_a_mount_is_where_its_variable_says_and_holds_the_working_directory(
    real_bench: Bench, tmp_path: Path
) -> None:
    storage = tmp_path / "storage"
    (storage / "code").mkdir(parents=True)
    (storage / "code" / "input").write_text("data")
    mount = Mount(storage, "/eva/job", variable="EVA_JOB_DIR")
    script = Script('cat input; echo result >"$EVA_JOB_DIR/output"')
    end, printed = await run(
        real_bench, real_bench.open(), script, mounts=(mount,), workdir="/eva/job/code"
    )
    assert (end.code, printed) == (0, b"data")
    assert (storage / "output").read_text() == "result\n"


@pytest.mark.parametrize("cpu", [0, 1])
async def test_a_task_sees_the_cpus_that_it_was_given(real_bench: Bench, cpu: int) -> None:
    require(cpu in os.sched_getaffinity(0), f"this machine has no CPU {cpu} for us")
    script = Script("nproc; grep Cpus_allowed_list /proc/self/status")
    end, printed = await run(real_bench, real_bench.open(), script, cpus=(cpu,))
    assert end.succeeded
    assert printed.split() == [b"1", b"Cpus_allowed_list:", str(cpu).encode()]


async def test_an_empty_command_is_refused(real_bench: Bench) -> None:
    runtime = real_bench.open()
    with pytest.raises(LaunchRefusedError, match="give `run`"):
        await runtime.start(await real_bench.launch(runtime, Argv(())))
    assert list(await runtime.adopt()) == []


async def test_data_is_staged_once_and_whole(real_bench: Bench, tmp_path: Path) -> None:
    runtime = real_bench.open()
    source, destination = tmp_path / "source", tmp_path / "deep" / "destination"
    source.mkdir()
    (source / "file").write_text("first")
    staging = (Staging(source, destination),)
    preparation = type(real_bench.preparation)(real_bench.preparation.image, staging)
    await asyncio.gather(runtime.prepare(preparation), runtime.prepare(preparation))
    (source / "file").write_text("second")
    await runtime.prepare(preparation)
    assert (destination / "file").read_text() == "first"
    assert [entry.name for entry in destination.parent.iterdir()] == ["destination"]
    missing = type(preparation)(preparation.image, (Staging(tmp_path / "no", tmp_path / "to"),))
    with pytest.raises(InputError, match="does not exist"):
        await runtime.prepare(missing)


async def test_what_a_task_leaves_behind_ends_with_it(real_bench: Bench, tmp_path: Path) -> None:
    """A process that left its parent, its group and its session writes until it is killed."""
    mount = Mount(tmp_path, "/shared", variable="SHARED")
    escape = (
        "(setsid sh -c 'while :; do date +%s%N >>\"$SHARED/beats\"; sleep 0.02; done' &)\n"
        'until [ -s "$SHARED/beats" ]; do sleep 0.02; done'
    )
    end, _ = await run(real_bench, real_bench.open(), Script(escape), mounts=(mount,))
    assert end.succeeded
    beats = (tmp_path / "beats").read_text()
    await asyncio.sleep(0.2)  # ten beats' time: silence is what is waited for
    assert (tmp_path / "beats").read_text() == beats


async def worker_process(bench: Bench, state: Path, when: str) -> asyncio.subprocess.Process:
    """A worker that is going to be killed."""
    arguments = (when, bench.name, str(state), bench.home.cluster, bench.image or "")
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        worker_that_dies.__name__,
        *arguments,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


async def test_a_killed_worker_takes_no_task_with_it_and_loses_no_exit_code(
    real_bench: Bench, tmp_path: Path
) -> None:
    worker = await worker_process(real_bench, tmp_path, "after")
    _, complaint = await worker.communicate()
    assert worker.returncode == -signal.SIGKILL, complaint.decode()

    runtime = real_bench.open()
    runs, ends = real_bench.ref("runs.0"), real_bench.ref("ends.0")
    assert {status.ref for status in await runtime.adopt()} == {runs, ends}
    assert (await runtime.wait(ends)).code == 7
    assert (await runtime.status(runs)).phase is TaskPhase.RUNNING
    assert (await runtime.stop(runs, 1_000)).exit.kind is not ExitKind.LOST


@pytest.mark.parametrize("seed", range(4))
async def test_killed_at_any_moment_of_a_start_a_task_ran_once_or_never(
    real_bench: Bench, tmp_path: Path, seed: int
) -> None:
    """What the next worker is told agrees with what the tasks did, and stays so."""
    marks = tmp_path / "marks"
    marks.mkdir()
    worker = await worker_process(real_bench, tmp_path, "whenever")
    assert worker.stdout is not None
    started = [(await worker.stdout.readline()).decode().strip()]
    await asyncio.sleep(random.Random(seed).uniform(0, 0.3))  # the moment, not a state
    worker.kill()
    started += (await worker.communicate())[0].decode().split()

    runtime = real_bench.open()
    found = [status.ref for status in await runtime.adopt()]
    assert {ref.task for ref in found} >= set(started)  # those that it was told of
    ends = {ref.task: await runtime.wait(ref) for ref in found}
    ran = {task for task, end in ends.items() if (end.kind, end.code) == (ExitKind.EXITED, 3)}
    never = {task for task, end in ends.items() if end.kind is ExitKind.NEVER_STARTED}
    assert ran | never == set(ends)
    assert ran >= set(started)
    lines = {path.name: path.read_text() for path in marks.iterdir()}
    assert lines == dict.fromkeys(ran, "ran\n")
