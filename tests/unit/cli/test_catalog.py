from __future__ import annotations

from pathlib import Path

from tests.unit.cli.conftest import Eva


def test_list(eva: Eva) -> None:
    outcome = eva("catalog", "list")
    assert outcome.code == 0
    assert "paper-physical" in outcome.out
    names = [entry["name"] for entry in eva("catalog", "list", "--json").json]
    assert names == ["paper", "paper-physical", "aws"]


def test_show_is_dearest_first(eva: Eva) -> None:
    lines = eva("catalog", "show", "paper").out.splitlines()
    assert lines[1].split() == ["p3.16xlarge", "8", "64", "488", "$24.4800", "3m54s"]
    assert len(lines) == 22


def test_show_as_json(eva: Eva) -> None:
    shown = eva("catalog", "show", "aws", "--family", "p5", "--json").json
    assert [kind["type"] for kind in shown["types"]] == ["p5.48xlarge", "p5.4xlarge"]
    assert shown["types"][0]["gpus"] == 8
    assert shown["types"][0]["price_as_of"]


def test_show_a_file_by_another_cpu_column(eva: Eva, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "instance_type,family,gpus,vcpus,physical_cores,memory_gb,usd_per_hour\na,x,0,4,2,8,0.1\n"
    )
    assert eva("catalog", "show", str(path), "--json").json["types"][0]["cpus"] == 4
    by_core = eva("catalog", "show", str(path), "--cpu-column", "physical_cores", "--json").json
    assert by_core["types"][0]["cpus"] == 2


def test_what_is_not_there_is_suggested(eva: Eva) -> None:
    outcome = eva("catalog", "show", "papr")
    assert (outcome.code, outcome.out) == (2, "")
    assert "did you mean 'paper'?" in outcome.err
    family = eva("catalog", "show", "aws", "--family", "c7")
    assert family.code == 2
    assert "is no family of catalog aws; did you mean" in family.err


def test_a_narrow_terminal_is_kept_to(eva: Eva) -> None:
    for line in eva("catalog", "list", columns=50).out.splitlines():
        assert len(line) <= 50


def test_the_risk_on_spot_is_shown_and_explained(eva: Eva) -> None:
    outcome = eva("catalog", "show", "aws", "--family", "p5", columns=80)
    first = outcome.out.splitlines()[1].split()
    assert first[4:7] == ["$55.0400", "$27.5200", first[6]]
    assert first[6] > "$0"
    assert "one in 20h00m" in outcome.out
    (kind, _) = eva("catalog", "show", "aws", "--family", "p5", "--json").json["types"]
    assert f"${kind['interruption_risk_usd_per_hour']:.4f}" == first[6]
    assert "risk" not in eva("catalog", "show", "paper").out
