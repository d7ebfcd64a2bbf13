"""Instances that nobody at the proxy asked for: launched at moto directly, known to the proxy."""

from __future__ import annotations

from typing import Any

from eva.adapters.aws.names import INSTANCE_TAG, Mark
from eva.model.ids import InstanceId
from tests.support.cloud_proxy import CloudProxy
from tests.support.moto_server import IMAGE, direct_client


def launch_directly(proxy: CloudProxy, mark: Mark | None, name: str, launched_ms: int) -> str:
    """Behind everybody's back, and without tags where there is no mark."""
    client: Any = direct_client("ec2", proxy.upstream)
    tags = [] if mark is None else mark.tags(InstanceId(name))
    specs = [{"ResourceType": "instance", "Tags": tags}] if tags else []
    made = client.run_instances(ImageId=IMAGE, MinCount=1, MaxCount=1, TagSpecifications=specs)
    client.close()
    ref = str(made["Instances"][0]["InstanceId"])
    params = {
        "TagSpecification.1.Tag.1.Key": INSTANCE_TAG,
        "TagSpecification.1.Tag.1.Value": name,
    }
    proxy.launch_behind(ref, params, launched_ms)
    return ref
