"""Either side may die at any moment; nothing is lost, done twice, or left running."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eva.adapters.grpc.dial import (
    Identity,
    MasterUnreachableError,
    RefusedByMasterError,
    dial,
    join,
)
from eva.adapters.grpc.generated import worker_pb2 as pb
from eva.adapters.grpc.link import LinkTimings
from eva.adapters.identity.authority import Authority
from eva.adapters.identity.bootstrap import Bootstrap, decode_bootstrap
from eva.adapters.identity.certificates import new_key, new_request
from eva.model.ids import InstanceId
from eva.model.resources import NOTHING
from eva.ports.cloud import CloudInstance
from eva.ports.workers import (
    Checkpointed,
    CheckpointOrder,
    CopyState,
    Exited,
    SpotNoticed,
    Started,
    WorkerHello,
)
from eva.worker.environment import socket_root
from eva.worker.lease import MARGIN_S
from tests.end_to_end.worker.small_master import JOB, TASK, SmallMaster, now_ms, start
from tests.support.metadata_server import metadata_server

pytestmark = pytest.mark.anyio


async def test_a_worker_that_is_killed_comes_back_to_its_tasks(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    master.send(instance, start("iterating.py", "80", "0.05"))
    await master.report(Started)
    await master.until(lambda: master.listener.samples.get(TASK))
    os.kill(master.worker_pid(instance), signal.SIGKILL)
    await master.until(lambda: len(master.listener.hellos) > 1 or None)
    again = master.listener.hellos[1]
    assert [(copy.task, copy.epoch, copy.state) for copy in again.copies] == [
        (TASK, 1, CopyState.RUNNING)
    ]
    master.send(instance, CheckpointOrder(TASK, 1, 1))
    step = (await master.report(Checkpointed)).step
    done = (master.folder / "storage/jobs/job/shared/done.txt").read_text().split()
    assert done == [str(each) for each in range(step or 0)]


async def test_what_ended_while_the_worker_was_dead_is_told(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    gate = master.folder / "gate"
    order = start("waits.py", str(gate), "5")
    master.send(instance, order)
    await master.report(Started)
    worker = master.worker_pid(instance)
    os.kill(worker, signal.SIGSTOP)
    gate.touch()
    os.kill(worker, signal.SIGKILL)
    assert (await master.report(Exited)).exit_code == 5


async def test_reports_are_repeated_until_they_are_acknowledged(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    master.listener.deaf.set()
    master.send(instance, start("plain.py", "9", "hello"))
    await master.report(Started)
    await master.restart()
    await master.report(Started)
    assert (await master.report(Exited)).exit_code == 9
    hello = master.listener.hellos[0]
    assert hello.unacknowledged >= 1
    # Acknowledged, it is forgotten: another restart hears nothing.
    await master.until(lambda: _forgotten(master, instance) or None)
    await master.restart()
    await master.until(lambda: master.listener.hellos or None)
    assert master.listener.hellos[0].copies == ()
    assert master.listener.hellos[0].unacknowledged == 0


def _forgotten(master: SmallMaster, instance: InstanceId) -> bool:
    return not list((master.folder / "cloud" / instance / "worker/tasks").glob("*/*/*/*"))


async def test_an_order_given_while_the_worker_was_away_is_carried_out(
    master: SmallMaster,
) -> None:
    instance = await master.launch("i-1")
    await master.stop()
    master.listener.outstanding[instance] = [start("plain.py", "3")]
    await master.start()
    assert (await master.report(Exited)).exit_code == 3


async def test_an_order_that_comes_twice_is_carried_out_once(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    order = start("iterating.py", "5", "0.01")
    for _ in range(3):
        master.send(instance, order)
    await master.report(Exited)
    done = (master.folder / "storage/jobs/job/shared/done.txt").read_text().split()
    assert done == [str(step) for step in range(5)]


async def test_terminating_an_instance_ends_all_that_it_runs(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    mark = f"mark-{os.getpid()}-{now_ms()}"
    master.send(instance, start("plain.py", "0", mark, "stubborn", "forever"))
    await master.report(Started)
    assert _running(mark)
    sockets = socket_root(master.folder / "cloud" / instance / "worker")
    assert list(sockets.iterdir())
    await master.terminate_all()
    assert not _running(mark)
    assert not sockets.exists()


def _running(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if mark in command:
            found.append(command)
    return found


async def test_a_dismissed_worker_stops_its_tasks_and_its_instance_ends(
    master: SmallMaster,
) -> None:
    instance = await master.launch("i-1")
    mark = f"mark-{os.getpid()}-{now_ms()}"
    master.send(instance, start("plain.py", "0", mark, "forever"))
    await master.report(Started)
    master.workers.dismiss(instance)
    ended = await _ended(master, instance)
    assert ended.terminated_ms is not None
    assert not _running(mark)


async def _ended(master: SmallMaster, instance: InstanceId) -> CloudInstance:
    path = master.folder / "cloud" / instance / "terminated.json"
    await master.until(lambda: path.exists() or None)
    return await master.cloud.describe(instance)


async def test_without_a_master_for_too_long_tasks_checkpoint_and_the_machine_is_powered_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(_systemctl(tmp_path)), prepend=os.pathsep)
    lease = tmp_path / "lease"
    master = SmallMaster(tmp_path, words=("--lease", str(lease), "--poweroff"))
    await master.start(LinkTimings(200, 5_000, dead_man_ms=1_500))
    try:
        instance = await master.launch("i-1")
        master.send(instance, start("iterating.py", "10000", "0.02"))
        await master.report(Started)
        await master.until(lambda: master.listener.samples.get(TASK))
        await master.stop()
        assert "code 0" in (await _ended(master, instance)).reason
        saved = master.storage.latest_complete_checkpoint(JOB, TASK)
        assert saved is not None
        done = (master.folder / "storage/jobs/job/shared/done.txt").read_text().split()
        assert saved.step == len(done)
        assert (tmp_path / "systemctl.called").read_text() == "poweroff\n"
        left_s = int(lease.read_text()) - time.clock_gettime(time.CLOCK_BOOTTIME)
        assert MARGIN_S - 60 < left_s <= MARGIN_S + 1
    finally:
        await master.terminate_all()


def _systemctl(folder: Path) -> Path:
    """A folder with one that writes down what it is asked for."""
    programs = folder / "programs"
    programs.mkdir()
    systemctl = programs / "systemctl"
    systemctl.write_text(f'#!/bin/sh\necho "$@" >> {folder}/systemctl.called\n')
    systemctl.chmod(0o755)
    return programs


async def test_a_spot_notice_is_passed_on(master: SmallMaster) -> None:
    instance = await master.launch("i-1")
    (master.folder / "cloud" / instance / "worker/spot-notice").write_text("12345")
    assert (await master.until(lambda: _noticed(master))).deadline_ms == 12345


async def test_a_notice_of_the_metadata_service_is_repeated_until_it_is_acknowledged(
    tmp_path: Path,
) -> None:
    """The tasks are saved in time although the master is away when it comes."""
    with metadata_server() as service:
        master = SmallMaster(tmp_path, metadata=service.address)
        await master.start()
        try:
            instance = await master.launch("i-1")
            master.send(instance, start("iterating.py", "2000", "0.05"))
            await master.report(Started)
            await master.until(lambda: master.listener.samples.get(TASK))
            await master.stop()
            soon = datetime.fromtimestamp(now_ms() / 1_000 + 20, UTC)
            service.facts["spot/instance-action"] = json.dumps({"time": soon.isoformat()})
            await master.until(lambda: master.storage.latest_complete_checkpoint(JOB, TASK))
            master.listener.deaf.set()
            await master.start()
            told = await master.until(lambda: _noticed(master))
            assert told.deadline_ms == pytest.approx(soon.timestamp() * 1_000, abs=2)
            await master.restart()
            assert await master.until(lambda: _noticed(master)) == told
            assert (await master.report(Checkpointed)).step
        finally:
            await master.terminate_all()
            await master.stop()


def _noticed(master: SmallMaster) -> SpotNoticed | None:
    reports = [report for _, report in master.listener.reports]
    return next((each for each in reports if isinstance(each, SpotNoticed)), None)


# ------------------------------------------------------------------------------------- strangers
def bootstrap_of(master: SmallMaster, name: str) -> Bootstrap:
    return decode_bootstrap(master.workers.bootstrap(InstanceId(name)))


async def test_a_token_buys_one_certificate_for_one_key(master: SmallMaster) -> None:
    bootstrap = bootstrap_of(master, "i-7")
    request = new_request(new_key(), bootstrap.instance)
    assert await join(bootstrap, request)
    assert await join(bootstrap, request)  # the first answer was lost: same key, same token
    other = new_request(new_key(), bootstrap.instance)
    with pytest.raises(RefusedByMasterError) as refused:
        await join(bootstrap, other)
    assert refused.value.reason == pb.REFUSAL_REASON_TOKEN_USED


async def test_a_token_of_nobody_or_of_another_instance_is_refused(master: SmallMaster) -> None:
    bootstrap = bootstrap_of(master, "i-7")
    for changed in (
        {"token": "guess"},
        {"instance": InstanceId("i-8")},
    ):
        wrong = Bootstrap(**{**{n: getattr(bootstrap, n) for n in Bootstrap.__slots__}, **changed})
        with pytest.raises(RefusedByMasterError) as refused:
            await join(wrong, new_request(new_key(), wrong.instance))
        assert refused.value.reason == pb.REFUSAL_REASON_TOKEN_UNKNOWN


async def hello_as(bootstrap: Bootstrap, identity: Identity, name: str) -> None:
    hello = WorkerHello(InstanceId(name), NOTHING, "", (), "fake", "0")
    async with dial(bootstrap, identity) as session:
        await session.greet(hello)


async def test_a_certificate_speaks_for_its_instance_alone(master: SmallMaster) -> None:
    bootstrap, key = bootstrap_of(master, "i-7"), new_key()
    identity = Identity(key, await join(bootstrap, new_request(key, bootstrap.instance)))
    await hello_as(bootstrap, identity, "i-7")
    with pytest.raises(RefusedByMasterError) as refused:
        await hello_as(bootstrap, identity, "i-8")
    assert refused.value.reason == pb.REFUSAL_REASON_WRONG_INSTANCE
    master.workers.dismiss(InstanceId("i-7"))
    with pytest.raises(RefusedByMasterError) as refused:
        await hello_as(bootstrap, identity, "i-7")
    assert refused.value.reason == pb.REFUSAL_REASON_REVOKED


async def test_an_instance_that_the_master_does_not_know_is_sent_away(master: SmallMaster) -> None:
    bootstrap, key = bootstrap_of(master, "i-7"), new_key()
    identity = Identity(key, await join(bootstrap, new_request(key, bootstrap.instance)))
    master.listener.refused.add(InstanceId("i-7"))
    with pytest.raises(RefusedByMasterError) as refused:
        await hello_as(bootstrap, identity, "i-7")
    assert refused.value.reason == pb.REFUSAL_REASON_UNKNOWN_INSTANCE


async def test_no_session_without_a_certificate_of_ours(
    master: SmallMaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eva.adapters.grpc.dial.DIAL_TIMEOUT_S", 2.0)
    bootstrap = bootstrap_of(master, "i-7")
    foreign, key = Authority(tmp_path / "foreign", "test", [], now_ms()), new_key()
    token = foreign.issue_token(bootstrap.instance, now_ms())
    certificate = foreign.join(
        bootstrap.instance, token, new_request(key, bootstrap.instance), now_ms()
    )
    foreign.close()
    with pytest.raises(MasterUnreachableError):
        await hello_as(bootstrap, Identity(key, certificate), "i-7")


async def test_a_worker_does_not_join_a_master_of_another_authority(
    master: SmallMaster, tmp_path: Path
) -> None:
    bootstrap = bootstrap_of(master, "i-7")
    foreign = Authority(tmp_path / "foreign", "test", [], now_ms())
    fields = {name: getattr(bootstrap, name) for name in Bootstrap.__slots__}
    wrong = Bootstrap(**{**fields, "authority_pem": foreign.certificate_pem.decode()})
    foreign.close()
    with pytest.raises(MasterUnreachableError):
        await join(wrong, new_request(new_key(), wrong.instance))
