"""What is particular to tasks as processes: supervisors that are killed, pids that are reused."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eva.adapters.machine import discard
from eva.adapters.process import placement as placements
from eva.adapters.process import supervisor
from eva.adapters.process.placement import Placement, folder_name
from eva.adapters.process.runtime import ProcessRuntime, after_hole
from eva.model.errors import InputError
from eva.model.ids import InstanceId, TaskId
from eva.ports.runtime import (
    Argv,
    DiskFullError,
    ExitKind,
    Home,
    ImageReference,
    Limits,
    NoSuchDeviceError,
    Preparation,
    Script,
    TaskLaunch,
    TaskPhase,
    TaskRef,
)
from tests.support.requirements import require

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

HOME = Home("c", InstanceId("i-1"))
REF = TaskRef("c", TaskId("job.0"), 1)


def folder_of(state: Path) -> Path:
    return state / "c" / "i-1" / folder_name(REF.task) / "1"


async def start(state: Path, script: str, **more: Any) -> ProcessRuntime:
    runtime = ProcessRuntime(HOME, state)
    await runtime.start(TaskLaunch(REF, Script(script), **more))
    return runtime


async def printed(runtime: ProcessRuntime, lines: int) -> list[bytes]:
    output = b""
    async for chunk in runtime.logs(REF):
        output += chunk.data
        if output.count(b"\n") >= lines:
            break
    return output.split(b"\n")


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


def alive(pid: int) -> bool:
    """Running; a zombie that init has not collected yet is not."""
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


async def test_a_killed_supervisor_means_lost_and_nothing_left(tmp_path: Path) -> None:
    runtime = await start(tmp_path, "echo $$; (setsid sleep 1000 & echo $!); sleep 1000")
    main, escaped = (int(line) for line in (await printed(runtime, 2))[:2])
    assert alive(main)
    assert alive(escaped)
    recorded = json.loads((folder_of(tmp_path) / "supervisor.json").read_text())
    os.kill(recorded["pid"], signal.SIGKILL)
    end = await runtime.wait(REF)
    assert (end.kind, end.code) == (ExitKind.LOST, None)
    assert not alive(main)
    assert not alive(escaped)
    assert (await ProcessRuntime(HOME, tmp_path).status(REF)).exit == end


async def test_a_reused_pid_is_nobody_of_ours(tmp_path: Path) -> None:
    """The record names a process that lives, but began at another time: this test itself."""
    runtime = await start(tmp_path, "exit 0")
    await runtime.wait(REF)
    folder = folder_of(tmp_path)
    (folder / "exit.json").unlink()
    start_time = supervisor.start_time(os.getpid())
    assert start_time is not None
    record = {"pid": os.getpid(), "start_time": start_time - 1}
    supervisor.write_durably(str(folder / "supervisor.json"), record)
    assert (await runtime.stop(REF, 0)).exit.kind is ExitKind.LOST


async def test_a_start_that_was_cut_short_never_happened(tmp_path: Path) -> None:
    """The folder is there, and the worker died before it had a supervisor."""
    runtime = ProcessRuntime(HOME, tmp_path)
    launch = TaskLaunch(REF, Script("echo never"))
    lock = runtime._write_folder(launch, Placement(REF, folder_of(tmp_path)), "mark")
    assert lock is not None
    assert (await runtime.status(REF)).phase is TaskPhase.STARTING
    os.close(lock)
    (status,) = await ProcessRuntime(HOME, tmp_path).adopt()
    assert status.exit is not None
    assert status.exit.kind is ExitKind.NEVER_STARTED


async def test_half_made_folders_are_swept(tmp_path: Path) -> None:
    runtime = ProcessRuntime(HOME, tmp_path)
    (tmp_path / "c" / "i-1" / ".new-1").mkdir()
    assert list(await runtime.adopt()) == []
    assert list((tmp_path / "c" / "i-1").iterdir()) == []


async def test_a_stopped_supervisor_is_waited_for_and_not_mistaken_for_dead(tmp_path: Path) -> None:
    runtime = await start(tmp_path, "sleep 1000")
    recorded = json.loads((folder_of(tmp_path) / "supervisor.json").read_text())
    os.kill(recorded["pid"], signal.SIGSTOP)
    stopping = asyncio.create_task(runtime.stop(REF, 0))
    await asyncio.sleep(0.1)  # time in which a wrong proof would be given
    assert not stopping.done()
    os.kill(recorded["pid"], signal.SIGCONT)
    assert (await stopping).exit.kind in {ExitKind.SIGNALLED, ExitKind.EXITED}  # seen to end


async def test_more_processes_than_allowed_end_the_task(tmp_path: Path) -> None:
    many = "i=0; while [ $i -lt 20 ]; do sleep 1000 & i=$((i+1)); done; wait"
    runtime = await start(tmp_path, many, limits=Limits(pids=10))
    end = await runtime.wait(REF)
    assert (end.kind, end.signal) == (ExitKind.SIGNALLED, 9)
    assert "more than 10 processes" in end.detail


async def test_memory_is_counted_over_all_processes(tmp_path: Path) -> None:
    """Each child is below the limit; together they are not."""
    child = "x=$(head -c 20000000 /dev/zero | tr '\\\\0' a); sleep 1000"
    script = f'for i in 1 2 3 4; do sh -c "{child}" & done; wait'
    script = script.replace("$(", "\\$(")
    runtime = await start(tmp_path, script, limits=Limits(memory_mib=70))
    end = await runtime.wait(REF)
    assert end.kind is ExitKind.OOM_KILLED, end
    assert "of 70 MiB" in end.detail


async def test_gpus_are_checked_and_shown(tmp_path: Path) -> None:
    runtime = ProcessRuntime(HOME, tmp_path, gpus=frozenset({"GPU-a", "GPU-b"}))
    with pytest.raises(NoSuchDeviceError, match="GPU-c"):
        await runtime.start(TaskLaunch(REF, Argv(("true",)), gpus=("GPU-a", "GPU-c")))
    show = Script('echo "<$CUDA_VISIBLE_DEVICES>"')
    for epoch, gpus in enumerate([("GPU-a", "GPU-b"), ()]):
        ref = TaskRef("c", REF.task, epoch)
        await runtime.start(TaskLaunch(ref, show, gpus=gpus))
        await runtime.wait(ref)
        output = b"".join([chunk.data async for chunk in runtime.logs(ref)])
        assert output.decode() == f"<{','.join(gpus)}>\n"


async def test_images_are_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs Docker"):
        await ProcessRuntime(HOME, tmp_path).prepare(Preparation(ImageReference("busybox")))


async def test_secrets_stay_off_the_disk_and_out_of_reprs(tmp_path: Path) -> None:
    launch = TaskLaunch(REF, Script("sleep 1000"), env={"TOKEN": "hush-hush"})
    assert "hush" not in repr(launch)
    runtime = ProcessRuntime(HOME, tmp_path)
    await runtime.start(launch)
    written = contents(tmp_path)
    assert written
    assert not [content for content in written if b"hush-hush" in content]
    await runtime.stop(REF, 0)


# ------------------------------------------------------------------------------------------- disk
@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "eva-test", disk],
        check=False,
        capture_output=True,
    )
    require(mounted.returncode == 0, "the right to mount a small tmpfs (root)")
    yield disk
    subprocess.run(["umount", disk], check=True)


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"x" * 1024)
        except OSError:
            return


async def test_a_full_disk_starts_nothing_and_says_so(small_disk: Path) -> None:
    runtime = ProcessRuntime(HOME, small_disk)
    fill(small_disk)
    with pytest.raises(DiskFullError, match="Free some"):
        await runtime.start(TaskLaunch(REF, Script("exit 0")))
    (small_disk / "filler").unlink()
    assert list(await runtime.adopt()) == []
    await runtime.start(TaskLaunch(REF, Script("exit 5")))
    assert (await runtime.wait(REF)).code == 5


async def test_a_disk_that_fills_up_loses_no_exit_code(small_disk: Path) -> None:
    runtime = await start(
        small_disk, "trap 'exit 9' USR1; echo up; while :; do sleep 0.02||:; done"
    )
    await printed(runtime, 1)
    fill(small_disk)
    await runtime.signal(REF, signal.SIGUSR1)
    assert (await runtime.wait(REF)).code == 9


def test_old_output_is_given_back_and_offsets_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "KEPT_OUTPUT_BYTES", 8_192)
    task = supervisor.Task(str(tmp_path), {})
    for _ in range(10):
        os.write(task.output, b"x" * 4_096)
    task.bound_output()
    log = tmp_path / "output.log"
    assert log.stat().st_size == 40_960
    assert log.stat().st_blocks * 512 <= 8_192 + 4_096
    with log.open("rb") as file:
        assert after_hole(file.fileno(), 0) == 40_960 - 8_192
        assert after_hole(file.fileno(), 40_000) == 40_000
        assert after_hole(file.fileno(), 40_960) == 40_960
    os.close(task.output)
    discard(tmp_path)


def test_names_are_harmless_and_distinct() -> None:
    names = ["..", ".", "a/b", "a%2Fb", "ü" * 200, "ü" * 199 + "u", "a" * 300]
    folders = [placements.folder_name(name) for name in names]
    assert len(set(folders)) == len(names)
    assert not [name for name in folders if "/" in name or name[0] == "." or len(name) > 255]
