"""The image that AWS publishes by a name: moto knows of none, so the proxy says one."""

from __future__ import annotations

import json

from tests.support.cloud_proxy import CloudProxy

PUBLISHED_IMAGE = "ami-1e749f67"  # one that moto has


def publish_image(proxy: CloudProxy, image: str = PUBLISHED_IMAGE) -> None:
    def answer(body: bytes) -> str:
        return json.dumps({"Parameter": {"Name": json.loads(body)["Name"], "Value": image}})

    proxy.script.answers["GetParameter"] = answer
