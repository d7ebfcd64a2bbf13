"""Tasks in real containers: what they may use, seen from inside, and what they may not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import docker
import pytest

from eva.adapters.docker import containers
from eva.adapters.docker.runtime import DockerRuntime
from eva.ports.runtime import (
    Argv,
    ExitKind,
    GangNetwork,
    LaunchRefusedError,
    Limits,
    LogChunk,
    Mount,
    Preparation,
    RuntimeUnreachableError,
    Script,
    TaskExit,
    TaskRuntime,
)
from tests.contract.runtime.bench import Bench

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

MIB = 1024 * 1024


async def run(bench: Bench, program: Argv | Script, **more: Any) -> tuple[TaskExit, str]:
    runtime = bench.open()
    launch = await bench.launch(runtime, program, **more)
    await runtime.start(launch)
    end = await runtime.wait(launch.ref)
    return end, await output(runtime, bench, **more)


async def output(runtime: TaskRuntime, bench: Bench, **more: Any) -> str:
    ref = more.get("ref") or bench.ref()
    return b"".join([chunk.data async for chunk in runtime.logs(ref)]).decode()


async def test_limits_are_seen_from_inside(bench: Bench) -> None:
    """By the kernel's own files, under either version of control groups."""
    script = Script(
        "cd /sys/fs/cgroup\n"
        "cat memory/memory.limit_in_bytes memory.max 2>/dev/null ||:\n"
        "cat pids/pids.max pids.max 2>/dev/null ||:\n"
        "nproc\n"
        "df -k /dev/shm | tail -n 1 | awk '{print $2}'\n"
    )
    limits = Limits(memory_mib=96, pids=77, shm_mib=24)
    end, printed = await run(bench, script, limits=limits, cpus=(0,))
    assert end.succeeded, printed
    assert [int(line) for line in printed.split()] == [96 * MIB, 77, 1, 24 * 1024]


async def test_a_container_has_no_privilege_and_no_way_to_docker(bench: Bench) -> None:
    script = Script(
        "grep -E '^(Cap(Prm|Eff|Bnd)|NoNewPrivs):' /proc/self/status\n"
        "ls /var/run/docker.sock /run/docker.sock 2>/dev/null ||:\n"
        "mount -t tmpfs none /tmp 2>/dev/null && echo mounted ||:\n"
        "cat /proc/1/cmdline | tr '\\0' ' '\n"
    )
    end, printed = await run(bench, script)
    assert end.succeeded
    assert "mounted" not in printed
    assert "docker.sock" not in printed
    lines = dict(line.split(":\t") for line in printed.splitlines() if ":\t" in line)
    assert {lines.pop("NoNewPrivs")} == {"1"}
    assert {int(mask, 16) for mask in lines.values()} == {0}
    assert "docker-init" in printed  # an init that reaps and passes signals on


async def test_a_child_killed_at_the_memory_limit_is_told_from_a_failure(bench: Bench) -> None:
    """The main process survives, and fails for the want of its child."""
    eats = Script("sh -c 'x=a; while :; do x=$x$x; done'")
    end, _ = await run(bench, eats, limits=Limits(memory_mib=48))
    assert end.kind is ExitKind.OOM_KILLED
    end, _ = await run(bench, Script("exit 137"), ref=bench.ref("other.0"))
    assert end.kind is ExitKind.SIGNALLED  # Docker keeps no difference to a signal


async def test_read_only_mounts_are(bench: Bench, tmp_path: Path) -> None:
    mount = Mount(tmp_path, "/data", read_only=True)
    end, _ = await run(bench, Script("touch /data/file"), mounts=(mount,))
    assert end.code == 1
    assert not (tmp_path / "file").exists()


async def test_a_mount_without_a_source_is_refused_and_leaves_nothing(
    bench: Bench, tmp_path: Path
) -> None:
    runtime = bench.open()
    mount = Mount(tmp_path / "missing", "/data")
    with pytest.raises(LaunchRefusedError, match="missing"):
        await runtime.start(await bench.launch(runtime, "waits", mounts=(mount,)))
    assert list(await runtime.adopt()) == []


async def test_the_output_of_one_long_line_is_whole_and_resumes(bench: Bench) -> None:
    """Docker cuts lines at 16 KiB; the cursor must not lose or repeat a piece."""
    script = Script("head -c 100000 /dev/zero | tr '\\0' x; echo; echo end")
    end, printed = await run(bench, script)
    assert end.succeeded
    whole = "x" * 100_000 + "\nend\n"
    assert printed == whole
    runtime = bench.open()
    chunks: list[LogChunk] = [chunk async for chunk in runtime.logs(bench.ref())]
    seen = b""
    for chunk in chunks:
        seen += chunk.data
        rest = [more.data async for more in runtime.logs(bench.ref(), chunk.cursor)]
        assert (seen + b"".join(rest)).decode() == whole


async def test_a_gang_of_two_talks_over_its_network(bench: Bench, engine: docker.APIClient) -> None:
    runtime = bench.open()
    serves = Script("echo hello from rank 0 | nc -l -p 4000")
    asks = Script("until nc rank-0 4000 </dev/null; do sleep 0.1; done")
    refs = [bench.ref("gang.0"), bench.ref("gang.1")]
    for rank, program in enumerate([serves, asks]):
        network = GangNetwork("gang", f"rank-{rank}")
        await runtime.start(await bench.launch(runtime, program, refs[rank], network=network))
    ends = await asyncio.gather(*(runtime.wait(ref) for ref in refs))
    assert all(end.succeeded for end in ends)
    assert await output(runtime, bench, ref=refs[1]) == "hello from rank 0\n"

    name = containers.network_name(bench.home.cluster, "gang")
    await runtime.remove(refs[0])
    assert engine.networks(names=[name])  # rank 1 still names it
    await runtime.remove(refs[1])
    assert engine.networks(names=[name]) == []


@pytest.mark.parametrize("alone", [True, False])
async def test_a_task_alone_does_not_reach_what_listens_for_the_machine_only(
    bench: Bench, *, alone: bool
) -> None:
    """Such as the cloud's metadata, with the role of the instance, or a master on a laptop."""
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        script = Script(f"nc -w 3 127.0.0.1 {port} </dev/null 2>&1 && echo reached || echo apart")
        _, printed = await run(bench, script, alone=alone)
    assert printed.split()[-1] == ("apart" if alone else "reached")


async def test_a_container_that_was_made_and_not_started_never_runs(
    bench: Bench, engine: docker.APIClient
) -> None:
    """The worker died between the two calls: its successor seals the placement."""
    dying = bench.open()
    assert isinstance(dying, DockerRuntime)
    await dying._create(await bench.launch(dying, "waits"))
    successor = bench.open()
    (status,) = await successor.adopt()
    assert status.exit is not None
    assert status.exit.kind is ExitKind.NEVER_STARTED
    name = containers.container_name(bench.ref(), bench.home)
    with pytest.raises(docker.errors.NotFound):  # the dead worker's call, arriving late
        engine.start(name)
    await successor.remove(bench.ref())


async def test_a_container_that_others_remove_is_unknown_not_ended(
    bench: Bench, engine: docker.APIClient
) -> None:
    runtime = bench.open()
    await runtime.start(await bench.launch(runtime, "waits"))
    engine.remove_container(containers.container_name(bench.ref(), bench.home), force=True)
    assert list(await runtime.adopt()) == []


async def test_an_engine_that_is_not_there_is_said_to_be_so(bench: Bench, tmp_path: Path) -> None:
    runtime = DockerRuntime(bench.home, tmp_path, url="tcp://127.0.0.1:1")
    with pytest.raises(RuntimeUnreachableError, match="docker info"):
        await runtime.adopt()
    with pytest.raises(RuntimeUnreachableError):
        await runtime.prepare(Preparation(bench.preparation.image))
    await runtime.close()
