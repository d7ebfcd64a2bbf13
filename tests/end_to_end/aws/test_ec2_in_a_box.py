"""`eva up --cloud aws` on machines that boot: containers behind moto's EC2, see `ec2_box`.

They run the user data as it is shipped, so all of it is seen at work: the watch, the fetching and
installing of the master's own Eva, the worker's joining by mutual TLS, its service, and powering
off. No machine of AWS is among them.
"""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eva_iterator.manifest import MANIFEST_NAME

from eva.adapters.aws import config_file
from eva.adapters.aws.request import user_data
from eva.adapters.aws.user_data import USER_DATA
from eva.cli.demo import JOBS
from eva.inputs import catalogs
from eva.model.ids import InstanceId
from eva.ports.cloud import LaunchIntent
from tests.end_to_end.aws.box_cluster import PYTHON, BoxCluster, box_cluster, containers
from tests.end_to_end.live.books import PROGRAM, read_book
from tests.support.cloud_proxy import Launch
from tests.support.moto_server import aws_credentials

__all__ = ["aws_credentials"]  # a fixture by being here
pytestmark = [
    pytest.mark.usefixtures("aws_credentials"),
    pytest.mark.timeout(600),  # the first of them makes the machines' image
]

BOOTS_WITHIN_S = 180  # on two cores that others use too
ONE_CPU = "resources: {cpus: 2, memory: 3GB}\n"


@pytest.fixture
def cluster(aws_credentials: None, tmp_path: Path) -> Iterator[BoxCluster]:
    with box_cluster(tmp_path) as made:
        yield made


def given(launch: Launch) -> str:
    return base64.b64decode(launch.params["UserData"]).decode()


def as_shipped(cluster: BoxCluster, launch: Launch) -> str:
    """What this instance is to be given, by the settings of the home and its own bootstrap."""
    (word,) = re.findall(r"eva1\.\S+", given(launch))
    kind = catalogs.load("aws").get(launch.params["InstanceType"])
    assert kind is not None
    settings = config_file.read(cluster.home / config_file.FILE_NAME).settings
    assert settings.user_data == USER_DATA
    settings = replace(settings, endpoint=cluster.box.endpoint)
    return user_data(settings, LaunchIntent(InstanceId("i-1"), kind, word), kind.name)


def test_a_machine_boots_the_shipped_user_data_and_runs_a_job(cluster: BoxCluster) -> None:
    cluster.init()
    cluster.up()
    run = 'echo "hello from $(hostname)" | tee "$EVA_JOB_DIR/said"'
    job = cluster.write_job(f"name: hello\nrun: {run}\n{ONE_CPU}")
    cluster.eva("submit", "--yes", "--detach", job)
    cluster.live.until(lambda client: client.job("hello-1").over, BOOTS_WITHIN_S)
    (machine,) = cluster.box.machines.all()
    assert given(machine.launch) == as_shipped(cluster, machine.launch)
    hello = f"hello from {machine.launch.ref}"
    assert hello in cluster.eva("logs", "hello-1")
    assert list(cluster.kept("*/said").values()) == [f"{hello}\n"]
    assert "finished" in cluster.eva("queue", "--all")
    cluster.eva("down", "--yes")
    assert cluster.is_over()
    assert len(cluster.box.proxy.launches) == 1


def test_the_demo_is_packed_and_moved_by_checkpoint_from_machine_to_machine(
    cluster: BoxCluster,
) -> None:
    cluster.init()
    cluster.up()
    # The gang is to be at work still when two more machines have booted. It comes second: the GPU
    # job's machine has room for it, in whichever round each of them is planned.
    steps = {"gpu": 100, "two-task": 900, "cpu": 50}
    demo = {wish.name: wish for wish in JOBS}
    wishes = [replace(demo[name], steps=count) for name, count in steps.items()]
    live = cluster.live
    jobs = [live.submit(wish.text_for(PYTHON)) for wish in wishes]
    live.until(lambda client: any(len(each.tasks) == 3 for each in client.instances()))
    live.until_over(jobs, within_s=240)
    with live.client() as client:
        ended = [client.job(job) for job in jobs]
        instances = client.instances(ended=True)
    assert [(job.state, job.failures) for job in ended] == [("finished", 0)] * 3
    assert [job.migrations for job in ended] == [0, 2, 0]
    kinds = sorted(each.type for each in instances)
    assert kinds == ["c7i.xlarge", "g4dn.12xlarge", "g4dn.2xlarge", "g4dn.2xlarge"]
    for wish, job in zip(wishes, jobs, strict=True):
        books = cluster.kept(f"{job}/shared/steps.*")
        assert len(books) == wish.nodes
        for book in books.values():
            assert [int(line) for line in book.split()] == list(range(1, wish.steps + 1))
    assert live.unpaid() == 0
    cluster.eva("down", "--yes")
    assert cluster.is_over()


def test_the_job_of_a_machine_that_dies_goes_on_on_another(cluster: BoxCluster) -> None:
    cluster.init()
    cluster.up()
    shutil.copy(PROGRAM, cluster.home)
    command = f"run: exec {PYTHON} {PROGRAM.name} 200 20 20"
    text = f"name: steady\nworkdir: .\n{command}\n{ONE_CPU}throughput: 20\nprogress: {{window: 5s}}"
    cluster.eva("submit", "--yes", "--detach", cluster.write_job(text))
    live = cluster.live
    live.until(
        lambda _: cluster.kept(f"steady-1/checkpoints/*/*/*/{MANIFEST_NAME}"), BOOTS_WITHIN_S
    )
    cluster.machine("i-1").kill()
    live.until_over(["steady-1"], within_s=240)
    with live.client() as client:
        first, second = client.instances(ended=True)
        assert (client.job("steady-1").state, first.ended_by) == ("finished", "lost")
    assert second.type == first.type
    (book,) = cluster.kept("steady-1/shared/book.0").values()
    copy = read_book(book)[-1]
    assert copy.epoch == 2
    assert copy.after > 0, "it began anew"
    assert copy.steps == list(range(copy.after + 1, 201))
    assert live.unpaid() == 0
    assert cluster.is_over()


def test_a_worker_that_crashes_is_started_again_and_one_that_is_refused_ends_its_machine(
    cluster: BoxCluster,
) -> None:
    cluster.init()
    cluster.up()
    live = cluster.live
    job = live.submit(f"name: long\nrun: sleep 15; echo slept\n{ONE_CPU}")
    live.until(lambda client: client.job(job).state == "running", BOOTS_WITHIN_S)
    machine = cluster.machine("i-1")
    machine.execute("systemctl", "kill", "--kill-who=main", "--signal=KILL", "eva-worker")
    again = launched_again(cluster, machine.launch)
    live.until_over([job], within_s=120)
    with live.client() as client:
        ended = client.job(job)
        assert (ended.state, ended.failures) == ("finished", 0)
        assert [line.text for line in client.logs(job)] == ["slept"]
        assert len(client.instances(ended=True)) == 1
    assert "Scheduled restart job" in cluster.box.machines.console(machine)
    cluster.until(cluster.is_over, within_s=120)
    console = cluster.box.machines.console(cluster.machine(again))
    assert "used" in console


def launched_again(cluster: BoxCluster, launch: Launch) -> str:
    """An instance that nobody knows of, with a token that has been used; its id."""
    client: Any = cluster.box.client("ec2")
    found = client.run_instances(
        ImageId=launch.params["ImageId"],
        InstanceType=launch.params["InstanceType"],
        Placement={"AvailabilityZone": launch.params["Placement.AvailabilityZone"]},
        ClientToken="again",
        MinCount=1,
        MaxCount=1,
        UserData=given(launch),
        IamInstanceProfile={"Name": launch.params["IamInstanceProfile.Name"]},
        InstanceInitiatedShutdownBehavior="terminate",
    )
    client.close()
    return str(found["Instances"][0]["InstanceId"])


def test_machines_whose_master_is_gone_power_themselves_off(cluster: BoxCluster) -> None:
    """One whose worker is there does it itself; of one that never joined the watch takes care."""
    cluster.init(join_minutes=1)
    cluster.up("--dead-man", "20")
    live = cluster.live
    job = live.submit(f"name: joined\nrun: sleep 600\n{ONE_CPU}")
    live.until(lambda client: client.job(job).state == "running", BOOTS_WITHIN_S)
    live.submit(f"name: never\nrun: sleep 600\n{ONE_CPU}")
    live.until(lambda _: len(cluster.box.proxy.launches) == 2)
    cluster.kill_master()
    cluster.until(lambda: set(cluster.box.states()) == {"terminated"}, within_s=240)
    consoles = cluster.box.machines.console
    assert "no word from the master for 20000 ms" in consoles(cluster.machine("i-1"))
    assert "no master for too long" in consoles(cluster.machine("i-2"))
    assert "TerminateInstances" not in cluster.box.proxy.calls
    assert containers() == []
