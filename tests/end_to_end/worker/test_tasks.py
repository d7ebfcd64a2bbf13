"""Tasks on real workers: started, moved, stopped, and told about truthfully."""

from __future__ import annotations

import signal

import pytest

from eva.model.ids import InstanceId, TaskId
from eva.model.resources import Resources
from eva.ports.runtime import Argv, ExitKind, Script
from eva.ports.workers import (
    Checkpointed,
    CheckpointFailed,
    CheckpointOrder,
    CheckpointPolicy,
    Exited,
    GangPlace,
    Started,
    StartFailed,
    StartOrder,
    StopOrder,
    Stopped,
    TaskRun,
)
from tests.end_to_end.worker.small_master import (
    JOB,
    TASK,
    SmallMaster,
    start,
    with_policy,
)

pytestmark = pytest.mark.anyio


async def test_a_task_runs_prints_and_exits_with_its_code(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    master.listener.deaf.set()  # so that its output is still there to be read
    master.send(instance, start("plain.py", "7", "hello"))
    await master.report(Started)
    await master.restart()
    exited = await master.report(Exited)
    assert (exited.exit_code, exited.kind) == (7, ExitKind.EXITED)


async def test_output_is_read_from_where_one_was(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    master.send(instance, start("plain.py", "0", "one", "two", "forever"))
    await master.report(Started)
    seen, cursor = b"", None
    async for chunk in master.workers.logs(instance, TASK, 1):
        seen, cursor = seen + chunk.data, chunk.cursor
        if b"step 3\n" in seen:
            break
    assert seen.startswith(b"one\ntwo\nstep 1\n")
    assert cursor is not None
    async for chunk in master.workers.logs(instance, TASK, 1, cursor):
        assert (seen + chunk.data).startswith(b"one\ntwo\nstep 1\nstep 2\nstep 3\n")
        assert not chunk.data.startswith(b"one")
        break


async def test_progress_is_reported_by_iterator_and_by_expression(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    run = TaskRun(None, Resources(0, 1_000, 512), progress_regex=r"step (\d+)")
    master.send(instance, start("plain.py", "0", "forever", run=run))

    def rate() -> float | None:
        sample = master.listener.samples.get(TASK)
        return sample.rate if sample and sample.steps and sample.steps > 20 else None

    assert 10 < await master.until(rate) < 60  # a step takes 20 ms and a little


async def test_a_task_moves_by_checkpoint_and_no_step_is_lost_or_done_twice(
    master: SmallMaster,
) -> None:
    here, there = await master.launch("i-1"), await master.launch("i-2")
    master.send(here, start("iterating.py", "60", "0.05"))
    await master.report(Started)
    await master.until(lambda: master.listener.samples.get(TASK))
    master.send(here, CheckpointOrder(TASK, 1, 1))
    checkpointed = await master.report(Checkpointed)
    assert checkpointed.attempt == 1
    assert checkpointed.step is not None
    assert 0 < checkpointed.step < 60
    master.send(there, start("iterating.py", "60", "0.01", epoch=2))
    assert (await master.report(Exited, epoch=2)).exit_code == 0
    done = (master.folder / "storage/jobs/job/shared/done.txt").read_text().split()
    assert done == [str(step) for step in range(60)]


async def test_a_signal_stands_for_a_request_where_the_job_says_so(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    policy = CheckpointPolicy(20_000, signal.SIGTERM)
    master.send(instance, start("plain.py", "0", "saves", "forever", run=with_policy(policy)))
    await printed(master, b"ready")
    master.send(instance, CheckpointOrder(TASK, 1, 1))
    assert (await master.report(Checkpointed)).step == 7


async def test_a_task_that_cannot_checkpoint_runs_on(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    run = with_policy(CheckpointPolicy(500))
    master.send(instance, start("plain.py", "0", "forever", run=run))
    await master.report(Started)
    master.send(instance, CheckpointOrder(TASK, 1, 1))
    failed = await master.report(CheckpointFailed)
    assert failed.attempt == 1
    assert "checkpoint.signal" in failed.reason
    steps = (await master.output(instance)).count(b"step")
    await printed(master, f"step {steps + 5}\n".encode())


async def test_a_task_that_may_restart_is_stopped_instead(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    policy = CheckpointPolicy(restart=True)
    master.send(instance, start("plain.py", "0", "forever", run=with_policy(policy)))
    await master.report(Started)
    master.send(instance, CheckpointOrder(TASK, 1, 1))
    await master.report(Stopped)


async def test_no_answer_in_time_leaves_it_running(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    policy = CheckpointPolicy(300, signal.SIGTERM)
    master.send(instance, start("plain.py", "0", "stubborn", "forever", run=with_policy(policy)))
    await printed(master, b"ready")
    master.send(instance, CheckpointOrder(TASK, 1, 1))
    assert "300 ms" in (await master.report(CheckpointFailed)).reason
    steps = (await master.output(instance)).count(b"step")
    await printed(master, f"step {steps + 5}\n".encode())


async def test_a_stale_epoch_is_refused(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    master.send(instance, start("plain.py", "0", "forever", epoch=3))
    await master.report(Started, epoch=3)
    master.send(instance, start("plain.py", "0", epoch=2))
    failed = await master.report(StartFailed, epoch=2)
    assert failed.infrastructure
    assert "stale" in failed.reason
    master.send(instance, StopOrder(TASK, 5))
    await master.report(Stopped, epoch=5)
    master.send(instance, start("plain.py", "0", epoch=5))
    assert "stale" in (await master.report(StartFailed, epoch=5)).reason


async def test_a_program_that_does_not_exist_is_the_jobs_failure(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    run = TaskRun(Argv(("/no/such/program",)), Resources(0, 1_000, 512))
    master.send(instance, StartOrder(JOB, TASK, 1, run))
    failed = await master.report(StartFailed)
    assert not failed.infrastructure
    assert "/no/such/program" in failed.reason


async def test_what_does_not_fit_is_refused(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    run = TaskRun(Argv(("/bin/true",)), Resources(3, 1_000, 512))
    master.send(instance, StartOrder(JOB, TASK, 1, run))
    failed = await master.report(StartFailed)
    assert failed.infrastructure
    assert "does not fit" in failed.reason


async def test_a_gang_knows_its_ranks_and_addresses(master: SmallMaster) -> None:
    instances = [await master.launch("i-1"), await master.launch("i-2")]
    names = ("RANK", "EVA_WORLD_SIZE", "MASTER_ADDR", "EVA_MASTER_PORT", "EVA_NODE_IPS")
    for rank, instance in enumerate(instances):
        gang = GangPlace(rank, 2, ("10.0.0.1", "10.0.0.2"), 29_500)
        run = TaskRun(None, Resources(1, 1_000, 512), gang=gang)
        order = start("plain.py", "0", *(f"env {name}" for name in names), "forever", run=run)
        task = TaskId(f"job.{rank}")
        master.send(instance, StartOrder(JOB, task, 1, order.run))
        await master.report(Started, task)
        await printed(master, b"step", task, instance)
        output = (await master.output(instance, task)).decode().splitlines()[: len(names)]
        values = (str(rank), "2", "10.0.0.1", "29500", "10.0.0.1,10.0.0.2")
        assert output == [f"{name} = {value}" for name, value in zip(names, values, strict=True)]


async def printed(
    master: SmallMaster, what: bytes, task: TaskId = TASK, instance: str = "i-1"
) -> None:
    """Wait until a running task has printed this."""
    await master.report(Started, task)
    seen = b""
    async for chunk in master.workers.logs(InstanceId(instance), task, 1):
        seen += chunk.data
        if what in seen:
            return
    raise AssertionError(f"{what!r} was never printed: {seen!r}")


async def test_a_task_finds_its_workdir_its_folder_and_its_variables(master: SmallMaster) -> None:
    source = master.folder / "submitted"
    (source / "data").mkdir(parents=True)
    (source / "data/words.txt").write_text("from the workdir")
    digest = master.storage.stage_workdir(source)
    instance = await master.launch("i-1")
    script = '(cat data/words.txt; echo " $GREETING $EVA_TASK") >"$EVA_JOB_DIR/seen.txt"'
    run = TaskRun(
        Script(script), Resources(0, 1_000, 512), env={"GREETING": "hello"}, workdir=digest
    )
    master.send(instance, StartOrder(JOB, TASK, 1, run))
    assert (await master.report(Exited)).exit_code == 0
    seen = (master.folder / "storage/jobs/job/shared/seen.txt").read_text()
    assert seen == "from the workdir hello job.0\n"
