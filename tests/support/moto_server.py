"""EC2 to test against: moto's HTTP server on a free loopback port, with made-up credentials."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

REGION = "us-east-1"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
}
IMAGE = "ami-0123456789abcdef0"


@contextmanager
def running_moto() -> Iterator[tuple[str, int]]:
    """The address of a server that lives as long as the block."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it tells of every call
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield server.get_host_and_port()
    finally:
        server.stop()


def direct_client(service: str, address: tuple[str, int]) -> Any:
    """A client of the tests' own, to look behind the adapter's back."""
    return boto3.client(
        service,
        endpoint_url=f"http://{address[0]}:{address[1]}",
        region_name=REGION,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


@pytest.fixture(scope="session")
def moto_address() -> Iterator[tuple[str, int]]:
    with running_moto() as address:
        yield address


@contextmanager
def credentials_set() -> Iterator[None]:
    """In the environment, as a user would have them."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in CREDENTIALS.items():
            environment.setenv(name, value)
        yield


@pytest.fixture
def aws_credentials() -> Iterator[None]:
    with credentials_set():
        yield
