"""A container for each instance: started when it is launched, killed when it is terminated.

Each has a thread, which is its life: boot, console, end. What a machine becomes by itself, because
it powers itself off or is killed, is told to moto too, so that every filter of EC2's API finds it
as it is. An instance counts as terminated only once its container is removed.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import docker
import docker.errors

from eva.model.catalog import Catalog
from tests.support.cloud_proxy import CloudProxy, Launch
from tests.support.metadata_server import MetadataServer, metadata_server
from tests.support.moto_server import REGION

LABEL = "eva.ec2-box"  # with the process that the container belongs to
# More than a container usually may, and far less than --privileged: systemd mounts file systems.
_CAPABILITIES = ("SYS_ADMIN", "NET_ADMIN")
_MEMORY = "2g"
_MOST_PROCESSES = 2_000
_OVER = frozenset({"stopped", "terminated"})
_CREDENTIALS = "iam/security-credentials/"


@dataclass
class Machine:
    """One instance. `metadata` is what it can ask about itself, and may be changed at any time."""

    launch: Launch
    metadata: MetadataServer = field(default_factory=MetadataServer)
    state: str = "pending"
    address: str | None = None
    container: Any = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        """Eva's own for it."""
        return self.launch.tag("eva:instance") or self.launch.ref

    def kill(self) -> None:
        """Cut its power. Whoever did not hear of it finds an instance that is gone."""
        with contextlib.suppress(docker.errors.APIError):  # it has just ended, or never began
            self.container.kill()

    def execute(self, *words: str) -> str:
        """Run something on it, as root."""
        code, said = self.container.exec_run(list(words))
        assert code == 0, said.decode()
        return str(said.decode())


class Machines:
    """`cloud_proxy.Machines`, by containers. Consoles are kept in `folder`."""

    def __init__(
        self,
        proxy: CloudProxy,
        moto: Any,
        catalog: Catalog,
        image: str,
        host: str,
        folder: Path,
    ) -> None:
        self._proxy = proxy
        self._moto = moto
        self._catalog = catalog
        self._image = image
        self._host = host
        self._folder = folder
        self._all: dict[str, Machine] = {}
        self._threads: list[threading.Thread] = []
        self.problems: list[Exception] = []

    # What the proxy asks

    def begin(self, launch: Launch) -> None:
        machine = self._all[launch.ref] = Machine(launch)
        self._go(self._live, machine)

    def end(self, launch: Launch) -> None:
        machine = self._all[launch.ref]
        with machine.lock:
            if machine.state in _OVER:
                return
            before, machine.state = machine.state, "shutting-down"
        if before == "running":
            self._go(machine.kill)

    def state(self, launch: Launch) -> str:
        return self._all[launch.ref].state

    def address(self, launch: Launch) -> str | None:
        machine = self._all[launch.ref]
        return machine.address if machine.state == "running" else None

    # What tests ask

    def named(self, name: str) -> Machine:
        """By Eva's name for it; the last that had it."""
        return [each for each in self._all.values() if each.name == name][-1]

    def all(self) -> list[Machine]:
        return list(self._all.values())

    def console(self, machine: Machine) -> str:
        """All that it has said; also of one that is gone."""
        path = self._console(machine)
        return path.read_text(errors="replace") if path.exists() else ""

    def consoles(self) -> str:
        return "\n".join(f"--- {each.name}\n{self.console(each)}" for each in self.all())

    def _console(self, machine: Machine) -> Path:
        return self._folder / f"{machine.name}-{machine.launch.ref}.console"

    @contextmanager
    def running(self) -> Iterator[Machines]:
        """At the end nothing of them is left, whatever has happened."""
        with closing(docker.from_env()) as client:
            remove_orphans(client)
        try:
            yield self
        finally:
            for machine in self.all():
                self.end(machine.launch)
            for thread in self._threads:
                thread.join()

    # The life of a machine

    def _go(self, work: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _live(self, machine: Machine) -> None:
        try:
            with closing(docker.from_env()) as client, metadata_server(self._host) as told:
                machine.metadata = told
                told.facts.clear()
                told.facts.update(facts_of(machine.launch))
                self._boot(client, machine)
                self._watch(machine)
        except Exception as error:  # noqa: BLE001  whatever it is, the instance is over
            self.problems.append(error)
        self._over(machine)

    def _boot(self, client: docker.DockerClient, machine: Machine) -> None:
        launch = machine.launch
        kind = self._catalog.get(launch.params["InstanceType"])
        assert kind is not None, f"no such type: {launch.params}"
        machine.container = client.containers.create(
            self._image,
            "/usr/local/sbin/boot",
            name=f"eva-box-{os.getpid()}-{launch.ref}",
            labels={LABEL: str(os.getpid())},
            hostname=launch.ref,
            environment={
                "container": "docker",
                "METADATA": machine.metadata.address.removeprefix("http://"),
                "GPUS": str(kind.capacity.gpus),
            },
            tty=True,
            cap_add=_CAPABILITIES,
            security_opt=["seccomp=unconfined", "apparmor=unconfined"],
            cgroupns="private",
            tmpfs={"/run": "exec", "/run/lock": "", "/tmp": "exec"},
            mem_limit=_MEMORY,
            pids_limit=_MOST_PROCESSES,
        )
        machine.container.start()
        machine.container.reload()
        (network,) = machine.container.attrs["NetworkSettings"]["Networks"].values()
        machine.metadata.facts["local-ipv4"] = machine.address = network["IPAddress"]
        with machine.lock:
            unwanted = machine.state != "pending"
            if not unwanted:
                machine.state = "running"
        if unwanted:
            machine.kill()

    def _watch(self, machine: Machine) -> None:
        """Its console, until it has ended and is removed."""
        try:
            with self._console(machine).open("wb") as console:
                for words in machine.container.logs(stream=True, follow=True):
                    console.write(words)
                    console.flush()
            machine.container.wait()
        finally:
            machine.container.remove(force=True, v=True)

    def _over(self, machine: Machine) -> None:
        launch = machine.launch
        behavior = launch.params.get("InstanceInitiatedShutdownBehavior", "stop")
        with machine.lock:
            by_itself = machine.state in {"pending", "running"}
            stays = by_itself and behavior == "stop"
            machine.state = "stopped" if stays else "terminated"
        if not by_itself:
            return
        if stays:
            self._moto.stop_instances(InstanceIds=[launch.ref])
            return
        launch.ending_ms = self._proxy.script.clock()
        self._moto.terminate_instances(InstanceIds=[launch.ref])


def facts_of(launch: Launch) -> Mapping[str, str]:
    """What the metadata service tells; credentials only where there is an instance profile."""
    params = launch.params
    zone = params["Placement.AvailabilityZone"]
    spot = params.get("InstanceMarketOptions.MarketType") == "spot"
    facts = {
        "/latest/user-data": base64.b64decode(params.get("UserData", "")).decode(),
        "ami-id": params["ImageId"],
        "instance-id": launch.ref,
        "instance-life-cycle": "spot" if spot else "on-demand",
        "instance-type": params["InstanceType"],
        "placement/availability-zone": zone,
        "placement/region": REGION,
    }
    profile = params.get("IamInstanceProfile.Name")
    if profile:
        facts[_CREDENTIALS] = profile
        facts[_CREDENTIALS + profile] = json.dumps(_credentials())
    return facts


def _credentials() -> Mapping[str, str]:
    now = datetime.now(UTC)
    return {
        "Code": "Success",
        "Type": "AWS-HMAC",
        "LastUpdated": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "AccessKeyId": "ASIAOFAMACHINEINABOX",
        "SecretAccessKey": "testing",
        "Token": "testing",
        "Expiration": f"{now + timedelta(hours=6):%Y-%m-%dT%H:%M:%SZ}",
    }


def remove_orphans(client: docker.DockerClient) -> None:
    """What a process left that was killed before it could clean up."""
    for each in client.containers.list(all=True, filters={"label": LABEL}):
        if not Path("/proc", each.labels[LABEL]).exists():
            with contextlib.suppress(docker.errors.APIError):  # another process was first
                each.remove(force=True, v=True)
