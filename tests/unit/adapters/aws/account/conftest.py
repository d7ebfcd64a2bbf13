from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eva.adapters.aws import software
from eva.adapters.aws.account.api import Api
from tests.support.cloud_proxy import CloudProxy
from tests.support.moto_server import CREDENTIALS, REGION
from tests.unit.adapters.aws.account.bench import AccountBench, new_account

WHEEL = software.Wheel("eva_scheduler-0.1.0+test-py3-none-any.whl", b"a wheel")
Connected = tuple[CloudProxy, str, Api]


@pytest.fixture(scope="session")
def connected_account(moto_address: tuple[str, int]) -> Iterator[Connected]:
    proxy = CloudProxy(moto_address, lambda: 0)
    with proxy.running() as endpoint, pytest.MonkeyPatch.context() as environment:
        for name, value in CREDENTIALS.items():
            environment.setenv(name, value)
        api = Api(REGION, endpoint)
        for service in ("ec2", "iam", "s3", "ssm", "sts"):
            api.client(service)
        environment.undo()
        yield proxy, endpoint, api
        api.close()


@pytest.fixture
def account(
    connected_account: Connected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AccountBench]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(software, "packed", lambda: WHEEL)  # packing takes half a second
    with new_account(*connected_account, tmp_path) as bench:
        yield bench
