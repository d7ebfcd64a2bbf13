"""The master around a cloud and workers in memory: jobs run, masters crash, nothing is lost."""

from __future__ import annotations

import asyncio

import pytest

from eva.control.invariants import check_everything
from eva.control.journal import digest
from eva.control.lifecycle import JobState, TaskState
from eva.master import memory as remembering
from eva.master.logs import lines
from eva.master.secrets import KEY_FILE
from eva.master.submission import KeyReusedError
from eva.model.errors import InputError
from eva.model.ids import JobId, TaskId
from eva.ports.cloud import CloudCapacityError, CloudUnreachableError
from eva.ports.journal import JournalFullError
from eva.ports.workers import Checkpointed, Exited, Started, Stopped, TaskSample
from tests.unit.master.conftest import JOB, Bench, running, until

GANG = JOB.replace("name: train", "name: pair\nnum_nodes: 2")


def test_a_job_runs_and_its_instance_goes(bench: Bench) -> None:
    async def story() -> None:
        async with running(bench) as master:
            job = await bench.submit()
            await until(lambda: bench.world.running(f"{job}.0"))
            assert len(list(bench.world.cloud.live)) == 1
            bench.world.finish(f"{job}.0")
            await until(lambda: job in master.state.records)
            assert master.state.records[JobId(job)].state is JobState.FINISHED
            await until(lambda: not master.state.instances)
            assert not bench.world.cloud.live
            check_everything(master.memory.state)

    asyncio.run(story())


def test_the_bill_is_the_clouds_uptime_times_price(bench: Bench) -> None:
    async def story() -> None:
        async with running(bench) as master:
            job = await bench.submit()
            await until(lambda: bench.world.running(f"{job}.0"))
            bench.world.finish(f"{job}.0")
            await until(lambda: not master.state.instances and master.state.records)
            (account,) = master.state.ledger.closed
            (cloud,) = bench.world.cloud.instances.values()
            assert (account.acquired_ms, account.ended_ms) == (
                cloud.launched_ms,
                cloud.terminated_ms,
            )

    asyncio.run(story())


def test_the_second_submit_with_a_key_is_answered_as_the_first(bench: Bench) -> None:
    async def story() -> None:
        async with running(bench) as master:
            first = await bench.submit(key="k")
            assert await bench.submit(key="k") == first
            assert len(master.state.jobs) == 1
            with pytest.raises(KeyReusedError, match=first):
                await bench.submit(JOB + "priority: 3\n", key="k")

    asyncio.run(story())


def test_a_key_is_remembered_by_the_next_master(bench: Bench) -> None:
    async def story() -> None:
        await bench.start()
        first = await bench.submit(key="k")
        await bench.crash()
        async with running(bench) as master:
            assert await bench.submit(key="k") == first
            other = await bench.submit()
            assert other != first
            assert len(master.state.jobs) == 2

    asyncio.run(story())


def test_what_no_instance_can_host_is_refused(bench: Bench) -> None:
    async def story() -> None:
        async with running(bench):
            with pytest.raises(InputError, match="GPU"):
                await bench.submit(JOB.replace("gpus: 1", "gpus: 9"))

    asyncio.run(story())


def test_a_full_disk_refuses_the_user_and_keeps_the_world(bench: Bench) -> None:
    async def story() -> None:
        async with running(bench) as master:
            job = await bench.submit()
            await until(lambda: bench.world.running(f"{job}.0"))
            bench.journal.refuse_next(JournalFullError("full"))
            with pytest.raises(JournalFullError):
                await bench.submit()
            assert len(master.state.jobs) == 1
            master.writer.retry_s = 0.01
            bench.journal.refuse_next(JournalFullError("full"), JournalFullError("full"))
            bench.world.finish(f"{job}.0")
            await until(lambda: job in master.state.records)

    asyncio.run(story())


def test_refused_and_unanswered_launches(bench: Bench) -> None:
    async def story() -> None:
        bench.world.cloud.refuse = [CloudUnreachableError("away"), CloudCapacityError("none")]
        async with running(bench) as master:
            job = await bench.submit()
            await until(lambda: bench.world.running(f"{job}.0"))
            assert [account.ended_by for account in master.state.ledger.closed] == [
                "launch refused: none"
            ]
            assert len(list(bench.world.cloud.live)) == 1

    asyncio.run(story())


def test_a_gang_starts_together_and_knows_itself(bench: Bench) -> None:
    async def story() -> None:
        async with running(bench):
            job = await bench.submit(GANG)
            await until(lambda: bench.world.running(f"{job}.1") and bench.world.running(f"{job}.0"))
            orders = [order for worker in bench.world.workers.values() for order in worker.started]
            gangs = sorted((order.run.gang for order in orders), key=lambda gang: gang.rank)
            assert [gang.rank for gang in gangs] == [0, 1]
            assert {gang.world_size for gang in gangs} == {2}
            assert gangs[0].node_ips == gangs[1].node_ips
            assert gangs[0].master_port == gangs[1].master_port

    asyncio.run(story())


@pytest.mark.parametrize("moment", range(6))
def test_a_crash_at_any_moment_loses_and_doubles_nothing(bench: Bench, moment: int) -> None:
    async def story() -> None:
        await bench.start()
        jobs = [await bench.submit(), await bench.submit(GANG)]
        await asyncio.sleep(0.06 * moment)
        await bench.crash()
        async with running(bench) as master:
            tasks = [f"{jobs[0]}.0", f"{jobs[1]}.0", f"{jobs[1]}.1"]
            await until(lambda: all(map(bench.world.running, tasks)))
            for task in tasks:
                bench.world.finish(task)
            await until(lambda: len(master.state.records) == 2 and not master.state.instances)
            assert not bench.world.cloud.live
            assert len(bench.world.runs) == len(set(bench.world.runs))
            check_everything(master.memory.state)

    asyncio.run(story())


def test_an_instance_that_no_plan_knows_is_terminated(bench: Bench) -> None:
    async def story() -> None:
        await bench.start()
        job = await bench.submit()
        await until(lambda: bench.world.running(f"{job}.0"))
        await bench.crash()
        bench.journal = type(bench.journal)(bench.journal._now_ms)
        async with running(bench):
            await until(lambda: not bench.world.cloud.live)

    asyncio.run(story())


def test_folding_and_snapshots_tell_the_same(bench: Bench) -> None:
    async def story() -> None:
        master = await bench.start()
        jobs = [await bench.submit(), await bench.submit(GANG)]
        await until(lambda: bench.world.running(f"{jobs[1]}.1"))
        await master._take_snapshot()
        bench.world.finish(f"{jobs[0]}.0")
        await until(lambda: jobs[0] in master.state.records)
        await bench.crash()
        expected = digest(master.memory.state)
        catalog, controller = master.around.catalog, bench.settings.controller
        seen: list[object] = []
        restored = remembering.recall(
            bench.journal, catalog, controller, lambda _now, event, _commands: seen.append(event)
        )
        assert digest(restored.state) == expected
        assert restored.jobs.keys() == {jobs[1]}
        assert len(seen) < bench.journal.head()
        bench.journal._snapshots.clear()
        folded = remembering.recall(bench.journal, catalog, controller, lambda *_: None)
        assert digest(folded.state) == expected

    asyncio.run(story())


def test_a_cancelled_job_is_stopped(bench: Bench) -> None:
    async def story() -> None:
        async with running(bench) as master:
            job = await bench.submit()
            await until(lambda: bench.world.running(f"{job}.0"))
            await master.cancel(JobId(job))
            await until(lambda: job in master.state.records)
            assert master.state.records[JobId(job)].state is JobState.CANCELLED
            assert not bench.world.running(f"{job}.0")

    asyncio.run(story())


def test_winding_up_leaves_nothing(bench: Bench) -> None:
    async def story() -> None:
        async with running(bench) as master:
            jobs = [await bench.submit(), await bench.submit(GANG)]
            await until(lambda: bench.world.running(f"{jobs[1]}.1"))
            await master.wind_up()
            assert not bench.world.cloud.live
            assert len(master.state.records) == 2

    asyncio.run(story())


def test_measured_delays_weigh_in_later_jobs_of_the_workload(bench: Bench) -> None:
    async def story() -> None:
        async with running(bench) as master:
            first = await bench.submit()
            assert master.state.jobs[JobId(first)].spec.tasks[0].delays.launch_ms == 0
            await until(lambda: bench.world.running(f"{first}.0"))
            await until(lambda: master.measured.launch_ms)
            second = await bench.submit()
            assert master.state.jobs[JobId(second)].spec.tasks[0].delays.launch_ms == 5

    asyncio.run(story())


def test_output_is_kept_when_the_instance_is_gone(bench: Bench) -> None:
    async def story() -> None:
        async with running(bench) as master:
            job = await bench.submit()
            await until(lambda: bench.world.running(f"{job}.0"))
            bench.world.finish(f"{job}.0")
            await until(lambda: not master.state.instances and job in master.state.records)
            kept = [
                line
                async for line in lines(
                    master.logs, [TaskId(f"{job}.0")], follow=True, is_over=lambda: True
                )
            ]
            assert kept == [(f"{job}.0", f"{job}.0 epoch 1 on i-1")]
            assert master.logs.folder.stat().st_mode & 0o077 == 0

    asyncio.run(story())


def test_a_worker_is_believed_about_its_own_copies_only(bench: Bench) -> None:
    """The certificate of one instance must not speak for another, nor name files of the master."""

    async def story() -> None:
        async with running(bench) as master:
            honest, other = await bench.submit(), await bench.submit()
            task = TaskId(f"{honest}.0")
            await until(lambda: bench.world.running(task) and bench.world.running(f"{other}.0"))
            thief = bench.world.worker_of(f"{other}.0").instance
            home = bench.world.worker_of(task).instance
            assert thief != home
            await until(lambda: master.state.tasks[task].state is TaskState.RUNNING)
            epoch = master.state.tasks[task].epoch
            outside = TaskId("../../outside/evil.0")
            for forged in (
                Exited(task, epoch, 0),
                Stopped(task, epoch),
                Checkpointed(task, epoch, 1, checkpoint_ms=60_000),
                Started(outside, 1, 5),
            ):
                await master.crew.reported(thief, forged)
            await master.crew.reported(home, Exited(task, epoch + 1, 0))  # its own, never placed
            master.crew.sampled(thief, [TaskSample(task, epoch, 3, 99.0)])
            assert master.state.tasks[task].state is TaskState.RUNNING
            assert master.crew.report() is None
            assert not master.measured.checkpoint_ms
            assert not master.logs.is_followed(outside, 1)
            master.crew.sampled(home, [TaskSample(task, epoch, 3, 2.0)])
            assert master.crew.report() is not None
            bench.world.finish(task)
            await until(lambda: honest in master.state.records)

    asyncio.run(story())


def test_secrets_that_cannot_be_opened_stop_their_job_alone(bench: Bench) -> None:
    async def story() -> None:
        master = await bench.start()
        sealed = await bench.submit(JOB + "secrets: {TOKEN: hush}\n")
        await bench.crash()
        key = (bench.home / KEY_FILE).read_bytes()
        (bench.home / KEY_FILE).unlink()
        master = await bench.start()
        other = await bench.submit()
        await until(lambda: bench.world.running(f"{other}.0"))
        await until(lambda: master.state.jobs[JobId(sealed)].state is JobState.STARTING)
        await until(lambda: len(bench.world.link.connected()) == 2)
        await master.round()
        await bench.crash()
        (bench.home / KEY_FILE).write_bytes(key)
        async with running(bench):
            await until(lambda: bench.world.running(f"{sealed}.0"))
            (order,) = bench.world.worker_of(f"{sealed}.0").started
            assert order.run.env["TOKEN"] == "hush"

    asyncio.run(story())
