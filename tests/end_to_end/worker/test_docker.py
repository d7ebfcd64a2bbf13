"""The same worker over Docker: containers move by checkpoint, and outlive the worker."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import docker
import pytest

from eva.model.resources import Resources
from eva.ports.runtime import ImageReference, Script
from eva.ports.workers import (
    Checkpointed,
    CheckpointOrder,
    CheckpointPolicy,
    CopyState,
    Exited,
    Started,
    StartOrder,
    TaskRun,
)
from tests.end_to_end.worker.small_master import JOB, TASK, SmallMaster
from tests.support.images import busybox

pytestmark = pytest.mark.anyio

STEPS = 60
COUNTING = f"""
asked=; trap 'asked=yes' TERM
step=$(cat "$EVA_RESTORE_DIR/next" 2>/dev/null || echo 0)
while [ "$step" -lt {STEPS} ]; do
  sleep 0.1 || true
  echo "$step" >>"$EVA_JOB_DIR/done.txt"; step=$((step + 1)); echo "step $step"
  if [ -n "$asked" ]; then
    cd "$EVA_CHECKPOINT_DIR"; echo "$step" >next
    sum=$(sha256sum next | cut -c1-64); size=$(wc -c <next)
    printf '{{"format": "eva-checkpoint", "version": 1, "step": %s, \
"files": [{{"path": "next", "bytes": %s, "sha256": "%s"}}]}}' \
      "$step" "$size" "$sum" >MANIFEST.json.tmp
    mv MANIFEST.json.tmp MANIFEST.json; exit 85
  fi
done
"""


@pytest.fixture(scope="session")
def busybox_image() -> Iterator[str]:
    with busybox("worker") as image:
        yield image


@pytest.fixture
async def docker_master(tmp_path: Path, busybox_image: str) -> AsyncIterator[SmallMaster]:
    master = SmallMaster(tmp_path, "docker")
    await master.start()
    yield master
    await master.terminate_all()
    await master.stop()
    engine = docker.APIClient(version="auto")
    label = {"label": f"eva.cluster={master.cluster}"}
    left = engine.containers(all=True, filters=label)
    engine.close()
    assert left == []


def counting(image: str, epoch: int) -> StartOrder:
    run = TaskRun(
        Script(COUNTING),
        Resources(0, 1_000, 128),
        ImageReference(image),
        checkpoint=CheckpointPolicy(20_000, signal.SIGTERM),
        progress_regex=r"step (\d+)",
    )
    return StartOrder(JOB, TASK, epoch, run)


async def test_a_container_moves_and_no_step_is_lost_or_done_twice(
    docker_master: SmallMaster, busybox_image: str
) -> None:
    master = docker_master
    here, there = await master.launch("i-1"), await master.launch("i-2")
    master.send(here, counting(busybox_image, 1))
    await master.report(Started)
    await master.until(lambda: master.listener.samples.get(TASK))
    master.send(here, CheckpointOrder(TASK, 1, 1))
    checkpointed = await master.report(Checkpointed)
    assert 0 < (checkpointed.step or 0) < STEPS
    master.send(there, counting(busybox_image, 2))
    assert (await master.report(Exited, epoch=2)).exit_code == 0
    done = (master.folder / "storage/jobs/job/shared/done.txt").read_text().split()
    assert done == [str(step) for step in range(STEPS)]


async def test_a_container_does_not_notice_that_its_worker_is_killed(
    docker_master: SmallMaster, busybox_image: str
) -> None:
    master = docker_master
    instance = await master.launch("i-1")
    master.send(instance, counting(busybox_image, 1))
    await master.report(Started)
    os.kill(master.worker_pid(instance), signal.SIGKILL)
    await master.until(lambda: len(master.listener.hellos) > 1 or None)
    assert [copy.state for copy in master.listener.hellos[1].copies] == [CopyState.RUNNING]
    assert (await master.report(Exited)).exit_code == 0
    done = (master.folder / "storage/jobs/job/shared/done.txt").read_text().split()
    assert done == [str(step) for step in range(STEPS)]
