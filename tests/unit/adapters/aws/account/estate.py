"""What a cluster may own or leave behind at moto, and a home whose journal knows of some of it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from eva.adapters.aws.book import AttemptBook
from eva.adapters.aws.ec2 import BOOK_FILE
from eva.adapters.aws.names import CLUSTER_TAG, Mark
from eva.adapters.sqlite import open_journal
from eva.adapters.stores import JOURNAL_FILE
from eva.control.controller import Controller
from eva.control.journal import Codec
from eva.control.settings import ControllerSettings
from eva.control.state import Instance
from eva.inputs import catalogs
from eva.master.intents import CLUSTER_FACT
from eva.master.memory import Memory
from eva.model.ids import InstanceId
from eva.ports.journal import Fact
from tests.support.published_image import PUBLISHED_IMAGE
from tests.unit.adapters.aws.account.bench import AccountBench

JOURNAL = "eva-0a1b2c3d"
TYPE = "g6.xlarge"  # as the catalog has it: 0.8048 $/hour
TTL_MS = 60_000


def write_journal(home: Path, *intents: str) -> None:
    """As a master of this home leaves it: its snapshot has these instances."""
    catalog = catalogs.builtin("aws")
    memory = Memory(Controller(catalog, ControllerSettings()), Codec(catalog))
    kind = catalog.get(TYPE)
    assert kind is not None
    for name in intents:
        memory.state.instances[InstanceId(name)] = Instance(InstanceId(name), kind, 0)
    with contextlib.closing(open_journal(home / JOURNAL_FILE)) as journal:
        lease = journal.acquire("test", TTL_MS)
        journal.put_fact(lease, Fact(CLUSTER_FACT, JOURNAL.encode(), 0))
        journal.save_snapshot(lease, memory.snapshot())
        journal.release(lease)


def write_book(home: Path, intent: str, ref: str) -> None:
    """It was this instance that the intent got."""
    book = AttemptBook(home.resolve() / "aws" / JOURNAL / BOOK_FILE, 0, 0)
    attempt = book.draft(InstanceId(intent), TYPE, "us-east-1a", spot=False, now_ms=0)
    book.got(attempt, ref)
    book.close()


def rent(
    account: AccountBench,
    intent: str,
    *,
    cluster: str = "main",
    journal: str = JOURNAL,
    client: Any = None,
    **more: Any,
) -> str:
    """As the launcher does it, with the tags of everything that comes with an instance."""
    tags = Mark(cluster, journal).tags(InstanceId(intent))
    kinds = ("instance", "volume", "network-interface")
    made = (client or account.client("ec2")).run_instances(
        **{
            "ImageId": PUBLISHED_IMAGE,
            "InstanceType": TYPE,
            "MinCount": 1,
            "MaxCount": 1,
            "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in kinds],
            **more,
        }
    )
    return str(made["Instances"][0]["InstanceId"])


def lose_volume(account: AccountBench, cluster: str = "main") -> str:
    return str(
        account.client("ec2").create_volume(
            AvailabilityZone="us-east-1a",
            Size=100,
            VolumeType="gp3",
            TagSpecifications=[
                {"ResourceType": "volume", "Tags": [{"Key": CLUSTER_TAG, "Value": cluster}]}
            ],
        )["VolumeId"]
    )


def lose_interface(account: AccountBench) -> str:
    ec2 = account.client("ec2")
    tags = [{"Key": CLUSTER_TAG, "Value": "main"}]
    made = ec2.create_network_interface(
        SubnetId=ec2.describe_subnets()["Subnets"][0]["SubnetId"],
        TagSpecifications=[{"ResourceType": "network-interface", "Tags": tags}],
    )
    return str(made["NetworkInterface"]["NetworkInterfaceId"])
