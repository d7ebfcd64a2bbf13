"""What is said of spot before and after: in the preview of a job, in the list of instances."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from eva.cli.cluster import instance_table
from eva.cli.serving import serve_words
from eva.cli.submitting import preview_lines
from eva.master.clouds import master_settings
from eva.master.options import ServeOptions
from eva.master.words import InstanceOut, Preview, PreviewInstance
from eva.model.errors import InputError
from eva.model.units import MS_PER_HOUR
from eva.scheduling.spot import Rate


def instance(name: str, kind: str, risk_micros: int) -> InstanceOut:
    return InstanceOut(
        id=name, type=kind, state="ready", hourly_micros=400_000, launched_ms=0, acquired_ms=0,
        ready_ms=0, ended_ms=None, ended_by="", uptime_ms=0, cost_micros=0,
        worth_micros=412_500, tasks=["a.0"], risk_micros=risk_micros,
    )  # fmt: skip


def shown(*found: InstanceOut) -> list[str]:
    console = Console(width=80, file=None, record=True)
    with console.capture() as captured:
        console.print(instance_table(found))
    return captured.get().splitlines()


def test_the_risk_has_a_column_where_there_is_any() -> None:
    header, first, second = shown(
        instance("i-1", "g5.xlarge:spot", 12_500), instance("i-2", "g5.xlarge", 0)
    )
    assert header.split()[3:6] == ["$/hour", "risk", "worth"]
    assert first.split()[:6] == ["i-1", "g5.xlarge:spot", "ready", "$0.40", "$0.0125", "$0.41"]
    assert "$0.0125" not in second
    assert "risk" not in shown(instance("i-2", "g5.xlarge", 0))[0]


def test_a_preview_tells_the_price_the_risk_and_what_it_means() -> None:
    place = PreviewInstance(
        type="g5.xlarge:spot", hourly_micros=400_000, instance=None, tasks=1, beside=[],
        risk_micros=12_500,
    )  # fmt: skip
    preview = Preview(
        instances=[place], hourly_micros_before=0, hourly_micros_after=400_000,
        alone_hourly_micros=400_000, unplaceable=[],
    )  # fmt: skip
    lines = preview_lines(preview)
    assert lines[1] == "  1 task on a new instance (g5.xlarge:spot, $0.4000/h + $0.0125/h of risk)"
    assert "That adds $0.4000/h to the bill" in lines[2]
    assert "may be taken back" in lines[3]
    steady = preview.model_copy(update={"instances": [place.model_copy(update={"risk_micros": 0})]})
    assert len(preview_lines(steady)) == 3


def test_what_a_master_is_told_to_believe(tmp_path: Path) -> None:
    options = ServeOptions(tmp_path, spot_interruptions=0.5)
    options.check()
    assert master_settings(options).controller.spot_risk.believed == Rate(1, 2 * MS_PER_HOUR)
    words = serve_words(options)
    assert words[words.index("--spot-interruptions") + 1] == "0.5"
    assert "--spot-interruptions" not in serve_words(ServeOptions(tmp_path))
    with pytest.raises(InputError, match="--spot-interruptions"):
        ServeOptions(tmp_path, spot_interruptions=-1).check()
