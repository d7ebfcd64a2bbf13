"""A bucket to test against: moto's HTTP server on a loopback port, with made-up credentials."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from eva.adapters.s3 import Location

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_numbers = itertools.count(1)


@contextmanager
def running_s3() -> Iterator[str]:
    """The endpoint of a server that lives as long as the block."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with running_s3() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def s3_client(s3_endpoint: str) -> Any:
    """A client of the tests' own, to look behind the adapter's back."""
    return boto3.client(
        "s3",
        endpoint_url=s3_endpoint,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


@pytest.fixture
def s3_location(s3_endpoint: str, s3_client: Any, monkeypatch: pytest.MonkeyPatch) -> Location:
    """An empty bucket, with credentials in the environment as a user would have them."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    name = f"eva-{next(_numbers)}"
    s3_client.create_bucket(Bucket=name)
    return Location(name, "clusters/a", s3_endpoint, "us-east-1")
