"""A cluster on machines of the box, by the commands that a user types, and what it left in S3."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import docker

from eva.adapters.aws import config_file
from eva.cli.serving import PID_FILE
from tests.end_to_end.live.cluster import LiveCluster
from tests.end_to_end.live.commands import run
from tests.support.ec2_box import Ec2Box, ec2_box
from tests.support.ec2_box.machine_image import NoMachineImageError
from tests.support.ec2_box.machines import LABEL, Machine
from tests.support.moto_server import REGION
from tests.support.requirements import require

PYTHON = "/var/lib/eva/environment/bin/python"  # of a machine, once the user data is through


@dataclass(frozen=True)
class BoxCluster:
    home: Path
    box: Ec2Box

    @property
    def live(self) -> LiveCluster:
        """The same home, looked at from inside."""
        return LiveCluster(self.home)

    def eva(self, *words: str) -> str:
        return run(self.home, *words)

    def init(self, **settings: object) -> None:
        """`eva aws init`, and then two things that a user may change in the file.

        The ports of the master are left to chance: other tests want them too.
        """
        where = ("--region", REGION, "--endpoint-url", self.box.endpoint)
        self.eva("aws", "init", "--yes", *where)
        path = self.home / config_file.FILE_NAME
        found = config_file.read(path)
        changed = replace(found.settings, **settings)  # type: ignore[arg-type]  # fields by name
        config_file.write(path, replace(found, settings=changed, worker_ports=()))

    def up(self, *words: str) -> None:
        """`eva up`, with rounds that are as short as machines of the box are quick."""
        here = ("--endpoint-url", self.box.endpoint, "--advertise", self.box.host, "--port", "0")
        self.eva("up", "--cloud", "aws", *here, "--delay-scale", "0.02", "--round", "2", *words)

    def write_job(self, text: str) -> str:
        path = self.home / "job.yaml"
        path.write_text(text)
        return str(path)

    def kill_master(self) -> None:
        """`kill -9`. It was started by a command that has ended, so it is nobody's child here."""
        os.kill(int((self.home / PID_FILE).read_text()), signal.SIGKILL)

    def machine(self, instance: str) -> Machine:
        return self.box.machines.named(instance)

    def kept(self, pattern: str) -> dict[str, str]:
        """The texts of what jobs keep in the bucket, by the names below `jobs/`."""
        bucket = config_file.read(self.home / config_file.FILE_NAME).bucket
        found = {}
        pages = self.box.s3.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix="storage/jobs/"
        )
        for name in [each["Key"] for page in pages for each in page.get("Contents", ())]:
            inside = name.removeprefix("storage/jobs/")
            if Path(inside).match(pattern):
                answer = self.box.s3.get_object(Bucket=bucket, Key=name)
                found[inside] = answer["Body"].read().decode()
        return found

    def until(self, condition: Callable[[], object], within_s: float = 60.0) -> None:
        """For what needs no master."""
        deadline = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline, self.box.states()
            time.sleep(0.2)

    def is_over(self) -> bool:
        """Every instance that there ever was is gone."""
        return set(self.box.states()) == {"terminated"} and not containers()


def containers() -> list[str]:
    """Machines of the box that are there, of this process's tests."""
    mine = {"label": f"{LABEL}={os.getpid()}"}
    with closing(docker.from_env()) as client:
        return [each.name for each in client.containers.list(all=True, filters=mine)]


@contextmanager
def box_cluster(folder: Path) -> Iterator[BoxCluster]:
    """A box of its own, a home without a cluster yet, and the end of both."""
    home, consoles = folder / "home", folder / "consoles"
    home.mkdir()
    consoles.mkdir()
    try:
        with ec2_box(consoles) as box:
            cluster = BoxCluster(home, box)
            try:
                yield cluster
            finally:
                print(box.machines.consoles())  # noqa: T201  shown where the test has failed
                cluster.live.down()
    except NoMachineImageError as missing:
        require(condition=False, reason=str(missing))
    assert containers() == []
