"""What is particular to instances that are processes of this machine: none of them may leak."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from eva.adapters.local import LocalDelays
from eva.model.catalog import InstanceDelays
from eva.model.errors import InputError, OperatorError
from eva.model.ids import InstanceId
from eva.ports.cloud import CloudState, LaunchIntent
from tests.contract.cloud.bench import KIND, CloudBench, clear, intent, local_bench

pytestmark = pytest.mark.anyio


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[CloudBench]:
    bench = local_bench(tmp_path / "cloud")
    yield bench
    await clear(bench)


def processes(folder: Path) -> dict[int, str]:
    """Those whose command line names the folder, by pid."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(folder) in command and int(entry.name) != os.getpid():
            found[int(entry.name)] = command
    return found


async def settled(folder: Path, count: int) -> dict[int, str]:
    async with asyncio.timeout(20):
        while len(found := processes(folder)) != count:  # noqa: ASYNC110  processes tell nobody
            await asyncio.sleep(0.02)
    return found


async def test_terminating_leaves_no_process(here: CloudBench, tmp_path: Path) -> None:
    await here.cloud.launch(intent("i-1"))
    await settled(tmp_path, 3)  # host, worker, and the worker's child
    await here.cloud.terminate(InstanceId("i-1"))
    await here.reaches("i-1", CloudState.TERMINATED)
    await settled(tmp_path, 0)


async def test_a_worker_that_dies_is_started_again(here: CloudBench, tmp_path: Path) -> None:
    await here.cloud.launch(intent("i-1"))
    before = await settled(tmp_path, 3)
    worker = int((tmp_path / "cloud/i-1/worker.pid").read_text())
    os.kill(worker, signal.SIGKILL)
    async with asyncio.timeout(20):
        while worker in (after := await settled(tmp_path, 3)):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert len(set(before) & set(after)) == 1  # the host alone
    assert (await here.cloud.describe(InstanceId("i-1"))).state is CloudState.RUNNING


async def test_a_machine_that_loses_power_is_told_to_be_gone(
    here: CloudBench, tmp_path: Path
) -> None:
    await here.cloud.launch(intent("i-1"))
    found = await settled(tmp_path, 3)
    (host,) = (pid for pid, command in found.items() if "eva.adapters.local" in command)
    os.kill(host, signal.SIGKILL)
    gone = await here.reaches("i-1", CloudState.TERMINATED)
    assert gone.reason == "its host process is gone"
    assert gone.terminated_ms is not None


MASTER = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.contract.cloud.bench import local_bench, intent
async def main():
    await local_bench(Path(sys.argv[1])).cloud.launch(intent("i-1"))
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


async def test_instances_outlive_a_master_that_is_killed(here: CloudBench, tmp_path: Path) -> None:
    command = [sys.executable, "-c", MASTER, str(tmp_path / "cloud")]
    ended = await asyncio.to_thread(subprocess.run, command, check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    await here.reaches("i-1", CloudState.RUNNING)
    await settled(tmp_path, 3)


async def test_a_launch_that_was_cut_short_can_be_called_off(
    here: CloudBench, tmp_path: Path
) -> None:
    cloud = here.cloud
    await cloud.launch(intent("i-1"))
    await cloud.terminate(InstanceId("i-1"))
    await here.reaches("i-1", CloudState.TERMINATED)
    await settled(tmp_path, 0)
    # As the master left it that died between writing the folder and starting the host.
    folder = tmp_path / "cloud/i-1"
    for name in ("begun", "launched", "booted", "terminate", "terminated"):
        (folder / f"{name}.json").unlink(missing_ok=True)
    assert (await cloud.describe(InstanceId("i-1"))).state is CloudState.PENDING
    ended = await cloud.terminate(InstanceId("i-1"))
    assert ended.state is CloudState.TERMINATED
    assert ended.launched_ms is None


async def test_the_bootstrap_is_for_the_owner_alone(here: CloudBench, tmp_path: Path) -> None:
    await here.cloud.launch(intent("i-1"))
    assert (tmp_path / "cloud/i-1/bootstrap").stat().st_mode & 0o077 == 0


async def test_a_name_that_leads_elsewhere_is_refused(here: CloudBench) -> None:
    with pytest.raises(InputError, match="cannot name a folder"):
        await here.cloud.launch(LaunchIntent(InstanceId("../up"), KIND, ""))


async def test_a_folder_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    bench = local_bench(tmp_path / "file/cloud")
    with pytest.raises(OperatorError, match="file/cloud"):
        await bench.cloud.check()


def test_delays_are_scaled_or_fixed() -> None:
    slow = InstanceDelays(1_000, 2_000, 3_000, 4_000)
    assert LocalDelays(0.5).of(slow) == {
        "acquire_ms": 500,
        "boot_ms": 2_500,
        "terminate_ms": 2_000,
    }
    fixed = LocalDelays(fixed=InstanceDelays(acquire_ms=7))
    assert fixed.of(slow) == {"acquire_ms": 7, "boot_ms": 0, "terminate_ms": 0}
