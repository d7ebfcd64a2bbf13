from __future__ import annotations

import stat
from dataclasses import fields, replace
from pathlib import Path

import pytest

from eva.adapters.aws.config_file import AwsConfig, parse, read, text_of, write
from eva.adapters.aws.settings import AwsSettings
from eva.adapters.s3 import Location
from eva.model.errors import InputError, OperatorError

SMALL = AwsConfig(
    AwsSettings("demo", "us-east-1", "ami-1", zones=("us-east-1a",)), "eva-demo-123456789012"
)
FULL = AwsConfig(
    AwsSettings(
        cluster="1e5",  # a number to YAML, and a fine name
        region="us-east-1",
        image="ami-1",
        zones=("us-east-1a", "us-east-1b"),
        subnets={"us-east-1a": "subnet-1"},
        security_groups=("sg-1",),
        instance_profile="eva-demo-worker",
        root_device="/dev/xvda",
        root_volume_gib=100,
        public_address=False,
        software="s3://b/software/eva.whl",
        user_data="#!/bin/sh\n# a: 'b'\n\techo \"{bootstrap}\"\n",
        join_minutes=5,
        endpoint="http://127.0.0.1:5000",
        settle_ms=1,
        set_aside_ms=2,
        calls_per_second=0.5,
        burst=3,
    ),
    bucket="eva-demo",
    account="012345678901",
    master_security_group="sg-2",
    master_instance_profile="no",  # false to older YAML
    image_parameter="/aws/service/x",
    worker_ports=(7333, 7334),
)


def complaints(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse(text, "aws.yaml")
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("config", [SMALL, FULL])
def test_what_is_written_is_read_again(config: AwsConfig, tmp_path: Path) -> None:
    path = tmp_path / "home" / "aws.yaml"
    write(path, config)
    assert read(path) == config
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_field_takes_part() -> None:
    """A setting that is added later is in the file too, or this says that no reader fits it."""
    untouched = {
        field.name
        for holder, small in ((FULL.settings, SMALL.settings), (FULL, SMALL))
        for field in fields(holder)
        if getattr(holder, field.name) == getattr(small, field.name)
    }
    assert untouched == {"region", "image"}


def test_what_is_at_its_default_is_not_written() -> None:
    lines = [line for line in text_of(SMALL).splitlines() if not line.startswith("#")]
    assert lines == [
        "cluster: demo",
        "region: us-east-1",
        "image: ami-1",
        "zones:",
        "- us-east-1a",
        "bucket: eva-demo-123456789012",
    ]


def test_the_masters_ports_are_two() -> None:
    text = text_of(SMALL) + "worker_ports: "
    assert parse(text + "[7333, 7334]\n", "aws.yaml").worker_ports == (7333, 7334)
    for wrong in ("[7333]", "[7333, 7333]", "[7333, 70000]"):
        assert "not two different ports" in complaints(f"{text}{wrong}\n")[0]
    assert "must be a whole number" in complaints(f"{text}[a, b]\n")[0]


def test_scripts_are_written_as_they_read() -> None:
    text = text_of(replace(FULL, settings=replace(FULL.settings, user_data="a\n{bootstrap}\n")))
    assert "user_data: |\n  a\n  {bootstrap}\n" in text


def test_all_problems_are_told_by_line() -> None:
    assert complaints(
        "cluster: a b\n"
        "regoin: us-east-1\n"
        "zones: us-east-1a\n"
        "subnets:\n  us-east-1a: [x]\n"
        "public_address: yes\n"
        "burst: 1.5\n"
        "calls_per_second: fast\n"
        "user_data: no place\n"
        "bucket: E_\n"
    ) == [
        "aws.yaml: region: is missing",
        "aws.yaml: image: is missing",
        "aws.yaml:1: cluster: 'a b' is no name: use letters, digits, dots and hyphens, 63 at most",
        "aws.yaml:2: regoin: is not a field of aws.yaml; did you mean 'region'?",
        "aws.yaml:3: zones: must be a list",
        "aws.yaml:4: subnets: must be text",
        "aws.yaml:6: public_address: must be true or false",
        "aws.yaml:7: burst: must be a whole number",
        "aws.yaml:8: calls_per_second: must be a number",
        "aws.yaml:9: user_data: does not hold {bootstrap}: say where the worker's bootstrap goes",
        (
            "aws.yaml:10: bucket: 'E_' is no name of a bucket: use 3 to 63 small letters, digits, "
            "dots and hyphens"
        ),
    ]


def test_amounts_that_make_no_sense_are_told_by_line() -> None:
    found = complaints(
        "cluster: a\nregion: r\nimage: i\nbucket: abc\nzones: [z]\n"
        "calls_per_second: 0\nburst: 0\njoin_minutes: 0\nroot_volume_gib: -1\nsettle_ms: -1\n"
        "set_aside_ms: -1\nsoftware: http://elsewhere\n"
    )
    assert [each.split(": ")[:2] for each in found] == [
        ["aws.yaml:6", "calls_per_second"],
        ["aws.yaml:7", "burst"],
        ["aws.yaml:8", "join_minutes"],
        ["aws.yaml:9", "root_volume_gib"],
        ["aws.yaml:10", "settle_ms"],
        ["aws.yaml:11", "set_aside_ms"],
        ["aws.yaml:12", "software"],
    ]


def test_what_cannot_go_together_is_told_by_line() -> None:
    text = "cluster: a\nregion: r\nimage: i\nbucket: abc\nzones: [z]\nsubnets: {y: s}\n"
    assert complaints(text) == ["aws.yaml:6: subnets: y not among the zones: add them"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "aws.yaml:1: must be a mapping of fields such as `region:`"),
        ("a: &x 1\nb: *x\n", "aws.yaml:2: uses more than 0 aliases (`*name`)"),
        ("", "aws.yaml: is empty"),
    ],
)
def test_other_shapes_are_refused(text: str, said: str) -> None:
    assert complaints(text) == [said]


def test_a_file_that_is_missing_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run `eva aws init` first"):
        read(tmp_path / "aws.yaml")


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file in the folder's place")
    with pytest.raises(OperatorError, match="cannot be written"):
        write(tmp_path / "home" / "aws.yaml", SMALL)


def test_storage_is_a_location_of_the_bucket() -> None:
    assert Location.parse(FULL.storage) == Location(
        "eva-demo", "storage", "http://127.0.0.1:5000", "us-east-1"
    )
    assert Location.parse(SMALL.storage).endpoint is None
