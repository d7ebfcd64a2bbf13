"""What differs between clouds, as far as options and files say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from eva.adapters.aws import AwsSettings, config_file
from eva.adapters.aws.config_file import AwsConfig
from eva.master.clouds import master_settings
from eva.master.options import ServeOptions


@pytest.mark.parametrize("settle_ms", [60_000, 7_000])
def test_for_how_long_ec2_may_not_show_an_instance_is_said_once(
    tmp_path: Path, settle_ms: int
) -> None:
    settings = AwsSettings("demo", "us-east-1", "ami-1", ("us-east-1a",), settle_ms=settle_ms)
    config_file.write(tmp_path / config_file.FILE_NAME, AwsConfig(settings, "eva-demo"))
    assert master_settings(ServeOptions(tmp_path, cloud="aws")).settle_ms == settle_ms
    assert master_settings(ServeOptions(tmp_path)).settle_ms != settle_ms  # of the local cloud
