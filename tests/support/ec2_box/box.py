"""moto, the proxy before it and the machines behind it, as one endpoint that machines reach too."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import docker

from eva.inputs import catalogs
from eva.master.clock import wall_ms
from tests.support.cloud_proxy import CloudProxy
from tests.support.ec2_box.machine_image import machine_image
from tests.support.ec2_box.machines import Machines
from tests.support.moto_server import direct_client, running_moto
from tests.support.price_list import serve_price_list
from tests.support.published_image import publish_image


@dataclass(frozen=True)
class Ec2Box:
    """`host` is this machine as the machines of the box see it; `ec2` and `s3` are moto, unseen."""

    endpoint: str
    host: str
    proxy: CloudProxy
    machines: Machines
    ec2: Any
    s3: Any

    def client(self, service: str) -> Any:
        """A client like anybody's, of the endpoint."""
        where = urlsplit(self.endpoint)
        return direct_client(service, (where.hostname or "", where.port or 0))

    def states(self) -> list[str]:
        """Of every instance that there ever was, as moto has them."""
        found = self.ec2.describe_instances()["Reservations"]
        return [each["State"]["Name"] for group in found for each in group["Instances"]]


@contextmanager
def ec2_box(folder: Path) -> Iterator[Ec2Box]:
    """An account with nothing in it. Consoles of its machines go to `folder`."""
    image, host = machine_image(), bridge_address()
    with (
        running_moto() as moto,
        closing(direct_client("ec2", moto)) as ec2,
        closing(direct_client("s3", moto)) as s3,
    ):
        proxy = CloudProxy(moto, wall_ms)
        proxy.reset()
        publish_image(proxy)
        catalog = catalogs.load("aws")
        serve_price_list(proxy, catalog)
        machines = Machines(proxy, ec2, catalog, image, host, folder)
        proxy.machines = machines
        # Nobody launches any more by the time at which the machines are ended.
        with machines.running(), proxy.running(host) as endpoint:
            yield Ec2Box(endpoint, host, proxy, machines, ec2, s3)
        proxy.reset()
        assert machines.problems == []


def bridge_address() -> str:
    """This machine on Docker's own network, where containers are."""
    with closing(docker.from_env()) as client:
        found = client.networks.get("bridge").attrs["IPAM"]["Config"]
    (network,) = (each for each in found if ":" not in each["Subnet"])
    first = next(ipaddress.ip_network(network["Subnet"]).hosts())
    return str(network.get("Gateway") or first)
