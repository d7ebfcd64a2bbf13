"""The script that an instance boots with. That it works, the machines of `ec2_box` show."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from eva.adapters.aws import AwsSettings
from eva.adapters.aws.request import user_data
from eva.model.errors import OperatorError
from eva.model.ids import InstanceId
from eva.ports.cloud import LaunchIntent
from tests.unit.adapters.aws.harness import BIG, BIGGER, ZONES

SETTINGS = AwsSettings("test", "us-east-1", "ami-1", ZONES)
WATCH = "/var/lib/eva/watch"
WHEEL = "s3://eva-1/software/eva_scheduler-0.1.0+abc-py3-none-any.whl"


def script_for(settings: AwsSettings = SETTINGS, word: str = "eva1.abc", kind: str = "") -> str:
    intent = LaunchIntent(InstanceId("i-1"), BIG, word, alternatives=(BIGGER,))
    return user_data(settings, intent, kind or BIG.name)


def check(script: str) -> None:
    """A shell can read it, and so it can what it writes for later."""
    for each in (script, written(script, "worker"), written(script, WATCH)):
        subprocess.run(["sh", "-n"], input=each, text=True, check=True)


def written(script: str, name: str) -> str:
    return script.split(f"cat > {name} <<'END'\n")[1].partition("\nEND\n")[0]


@pytest.mark.parametrize("word", ["eva1.abc", "it's", "$(reboot)", "a b", "{region}", "\\1"])
def test_whatever_the_words_are_it_is_a_script_and_says_them_as_they_are(word: str) -> None:
    settings = replace(SETTINGS, region=word, endpoint=word, software=f"s3://{word}")
    script = script_for(settings, word)
    check(script)
    quoted = shlex.quote(word)
    assert f"printf %s {quoted} > bootstrap" in script
    assert f"--region {quoted} " in script
    assert f"\nendpoint={quoted}\n" in script
    assert f"\nsoftware={shlex.quote('s3://' + word)}\n" in script


def test_the_watch_comes_first_and_the_rest_of_the_space_is_left() -> None:
    script = script_for(replace(SETTINGS, join_minutes=7, software=WHEEL))
    watched = script.index("enable --now eva-watch")
    assert script.index("60 * 7)") < watched < script.index("eva1.abc")
    assert len(script.encode()) < 4_096


class Watch:
    """The watch as it is on a machine, with a lease of its own, in haste, and unable to do harm."""

    def __init__(self, folder: Path, join_minutes: int) -> None:
        self.lease, self.called = folder / "lease", folder / "called"
        for name, does in (("systemctl", f'echo "$@" >> {self.called}'), ("sleep", "exec true")):
            (folder / name).write_text(f"#!/bin/sh\n{does}\n")
            (folder / name).chmod(0o755)
        script = written(script_for(replace(SETTINGS, join_minutes=join_minutes)), WATCH)
        self.script = script.replace("/run/eva-worker.lease", str(self.lease))
        assert script.count("/run/eva-worker.lease") == 1
        assert "--lease /run/eva-worker.lease" in written(script_for(), "worker")
        self.path = f"{folder}{os.pathsep}{os.environ['PATH']}"

    def lasts_until(self, seconds_from_now: int) -> None:
        uptime = Path("/proc/uptime").read_text().partition(".")[0]
        self.lease.write_text(f"{int(uptime) + seconds_from_now}\n")

    def run(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sh", "-c", self.script], env={"PATH": self.path})


def test_a_machine_whose_lease_is_over_is_powered_off(tmp_path: Path) -> None:
    watch = Watch(tmp_path, join_minutes=30)
    watch.lasts_until(2)
    assert watch.run().wait(timeout=60) == 0
    assert watch.called.read_text() == "poweroff\n"


def test_a_lease_that_is_renewed_keeps_the_machine_and_so_does_a_young_machine_without_one(
    tmp_path: Path,
) -> None:
    watch = Watch(tmp_path, join_minutes=1)
    watching = watch.run()
    with pytest.raises(subprocess.TimeoutExpired):
        watching.wait(timeout=0.5)
    watch.lasts_until(600)
    with pytest.raises(subprocess.TimeoutExpired):
        watching.wait(timeout=0.5)
    watching.kill()
    watching.wait()
    assert not watch.called.exists()


def test_without_software_the_image_has_it() -> None:
    assert "\nsoftware=''\n" in script_for()
    assert "\nendpoint=''\n" in script_for()


def test_the_capacity_is_that_of_the_type_that_was_asked_for() -> None:
    assert "\ncapacity=4,32000,249856\n" in script_for(kind=BIG.name)
    assert "\ncapacity=8,64000,499712\n" in script_for(kind=BIGGER.name)
    # An attempt from before a restart, for a type that nobody names any more.
    assert "\ncapacity=''\n" in script_for(kind="p2.xlarge")


def test_a_script_of_ones_own_gets_the_words_that_it_names_and_keeps_its_braces() -> None:
    own = "#!/bin/sh\n{ echo ${HOME} {bootstrap}; } # {join_minutes} {other} {software}\n"
    script = script_for(replace(SETTINGS, user_data=own, software=WHEEL), "a b")
    assert script == f"#!/bin/sh\n{{ echo ${{HOME}} 'a b'; }} # 30 {{other}} {WHEEL}\n"


def test_what_ec2_would_not_take_is_refused_before() -> None:
    with pytest.raises(OperatorError, match="shorten"):
        script_for(replace(SETTINGS, user_data="{bootstrap}" + "#" * 16_384))
