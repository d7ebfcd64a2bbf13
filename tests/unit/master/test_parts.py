"""Parts of the master on their own: clock, secrets, tokens, plans, options, leases."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from eva.adapters.identity.authority import Authority
from eva.adapters.memory.journal import MemoryJournal
from eva.control.commands import ComputePlan
from eva.control.events import PlanComputed, PlanFailed
from eva.inputs.catalogs import builtin
from eva.inputs.job_file import parse
from eva.master.clock import SteadyClock, wall_ms
from eva.master.definitions import decode, define, encode, workload_of
from eva.master.measured import Measured
from eva.master.options import ServeOptions, with_delays_scaled
from eva.master.planner import Planner
from eva.master.secrets import KEY_FILE, Vault
from eva.master.server import serve
from eva.master.service import Surroundings
from eva.master.tokens import Tokens, UnauthorisedError
from eva.master.words import Submission
from eva.model.errors import InputError, OperatorError
from eva.model.ids import JobId, TaskId, Workload
from eva.model.jobs import TaskDelays, TaskSpec
from eva.model.resources import Demand
from eva.model.snapshot import ClusterSnapshot, TaskView
from tests.unit.master.conftest import Bench, running, until


def test_the_clock_never_goes_back() -> None:
    times = iter([100, 90, 120, 110, 400])
    clock = SteadyClock(lambda: next(times))
    assert [clock() for _ in range(3)] == [100, 100, 120]
    clock.start_after(300)
    assert [clock(), clock()] == [300, 400]


def test_secrets_are_sealed_with_a_key_of_the_home(tmp_path: Path) -> None:
    sealed = Vault.at(tmp_path).seal({"TOKEN": "hush"})
    assert sealed is not None
    assert "hush" not in sealed
    assert Vault.at(tmp_path).open(sealed) == {"TOKEN": "hush"}
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o077 == 0
    (tmp_path / "other").mkdir()
    with pytest.raises(OperatorError, match="another key"):
        Vault.at(tmp_path / "other").open(sealed)


def test_tokens_are_kept_as_hashes_and_die_when_revoked() -> None:
    journal = MemoryJournal(wall_ms)
    lease = journal.acquire("test", 60_000)
    tokens = Tokens(journal, lease, wall_ms)
    token = tokens.make("ci")
    fact = journal.fact("tokens")
    assert fact is not None
    assert token.encode() not in fact.value
    again = Tokens(journal, lease, wall_ms)
    again.load()
    assert again.owner(token) == "ci"
    with pytest.raises(InputError, match="exists"):
        again.make("ci")
    again.revoke("ci")
    with pytest.raises(UnauthorisedError, match="revoked"):
        again.owner(token)
    with pytest.raises(UnauthorisedError, match="missing"):
        again.owner(None)


def test_definitions_survive_the_journal() -> None:
    text = "name: a\nrun: [x, 'y z']\nenvs: {B: 1}\ncheckpoint: {path: model}\n"
    definition = define(JobId("a-1"), parse(text, "a.yaml"), "digest", None, "me")
    assert decode(encode(definition)) == definition


def test_equal_jobs_share_a_fingerprint_and_others_do_not() -> None:
    def workload(text: str, workdir: str | None = None) -> str:
        return workload_of(parse(f"name: a\nrun: x\n{text}", "a.yaml"), workdir)

    assert workload("") == workload("priority: 3\nretries: 2")
    assert workload("workdir: .", "one") == workload("workdir: .", "two")
    assert workload("") != workload("image: b")
    assert workload("") != workload("resources: {gpus: 1}")
    docker = "workdir: .\ndockerfile: Dockerfile"
    assert workload(docker, "one") != workload(docker, "two")
    assert workload("workload: mine") == "mine"


def test_delays_are_averaged_and_remembered() -> None:
    measured = Measured()
    assert measured.of(Workload("a")) == TaskDelays(0, 0)
    measured.launch_ms[Workload("a")] = 100
    assert Measured.load(measured.dump()).of(Workload("a")) == TaskDelays(0, 100)


def snapshot() -> ClusterSnapshot:
    spec = TaskSpec(Workload("a"), Demand.of(1, 4, 20))
    return ClusterSnapshot(0, builtin("paper"), (TaskView(TaskId("a.0"), JobId("a"), spec),))


def test_plans_come_from_a_process_that_may_die() -> None:
    async def story() -> None:
        planner = Planner("eva")
        try:
            answer = await planner.answer(ComputePlan(1, snapshot()))
            assert isinstance(answer, PlanComputed)
            (planned,) = answer.plan.instances
            assert planned.type is builtin("paper").get("p3.2xlarge")
            assert planner._pool is not None
            asking = asyncio.create_task(planner.answer(ComputePlan(2, snapshot())))
            for process in planner._pool._processes.values():
                process.kill()
            assert isinstance(await asking, (PlanFailed, PlanComputed))
            await planner.answer(ComputePlan(3, snapshot()))  # may still meet the dead process
            assert isinstance(await planner.answer(ComputePlan(4, snapshot())), PlanComputed)
        finally:
            planner.close()

    asyncio.run(story())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org"])
def test_other_machines_need_tls(tmp_path: Path, host: str) -> None:
    with pytest.raises(InputError, match="--tls-cert"):
        ServeOptions(tmp_path, host).check()
    pem = tmp_path / "pem"
    ServeOptions(tmp_path, host, tls_certificate=pem, tls_key=pem).check()
    ServeOptions(tmp_path, "127.0.0.1").check()


def test_scaled_delays_leave_prices() -> None:
    kind = with_delays_scaled(builtin("paper"), 0.1).get("p3.8xlarge")
    assert kind is not None
    assert (kind.hourly_micros, kind.delays.acquire_ms) == (12_240_000, 3_700)


def test_a_standby_takes_over_where_the_lease_ends(bench: Bench) -> None:
    async def story() -> None:
        first = await bench.start()
        job = await bench.submit()
        await until(lambda: bench.world.running(f"{job}.0"))
        standing_by = asyncio.create_task(bench.start())
        await asyncio.sleep(0.1)
        assert not standing_by.done()
        await first.abandon()
        bench.world.disconnect()
        bench.journal.release(first.lease)
        second = await asyncio.wait_for(standing_by, 60)
        assert job in second.state.jobs
        bench.world.finish(f"{job}.0")
        await until(lambda: job in second.state.records)
        await second.stop()

    bench.settings = type(bench.settings)(
        round_ms=100, poll_ms=50, settle_ms=200, lease_ttl_ms=2_000
    )
    asyncio.run(story())


def test_a_master_that_lost_its_lease_stops_acting(bench: Bench) -> None:
    async def story() -> None:
        async with running(bench) as master:
            bench.journal.release(master.lease)
            bench.journal.acquire("another", 60_000)
            with pytest.raises(asyncio.CancelledError):
                await master.desk.submit(Submission(job_file="run: x\n"), "me")
            with pytest.raises(OperatorError, match="no longer holds the lease"):
                await master.until_failure()

    asyncio.run(story())


def test_a_standby_without_the_clusters_identity_does_not_start(tmp_path: Path) -> None:
    """It would make its own, and every worker of the cluster would be turned away."""
    store = str(tmp_path / "journal.db")

    class SurroundedError(Exception):
        """As far as this test goes."""

    def surround(_options: object, _journal: object, authority: Authority) -> Surroundings:
        authority.close()
        raise SurroundedError

    def start(home: str) -> None:
        options = ServeOptions(tmp_path / home, port=0, store=store)
        asyncio.run(serve(options, surround))

    with pytest.raises(SurroundedError):
        start("first")
    with pytest.raises(OperatorError, match=r"copy `identity`, `secrets.key` and `ports.json`"):
        start("second")
    shutil.copytree(tmp_path / "first" / "identity", tmp_path / "second" / "identity")
    with pytest.raises(SurroundedError):
        start("second")
