"""The ground truth: the measured matrix, a user's own, and a uniform one."""

from __future__ import annotations

from pathlib import Path

import pytest

from eva.model.errors import InputError
from eva.traces.interference import MEASURED, UNMEASURED, load_interference, uniform
from eva.traces.workloads import KINDS, kind_of


def test_rows_are_slowed_by_columns_and_numbers_do_not_matter() -> None:
    assert MEASURED.pair("gcn", "a3c") == 0.647
    assert MEASURED.pair("a3c", "gcn") == 0.944
    assert MEASURED.pair("gcn[3]", "a3c[11]") == MEASURED.pair("gcn[7]", "a3c") == 0.647


def test_what_was_not_measured_counts_as_095() -> None:
    assert MEASURED.pair("resnet18[0]", "seq[0]") == UNMEASURED == 0.95
    assert MEASURED.pair("nobody", "gcn[0]") == 0.95


def test_the_matrix_speaks_of_exactly_the_nine_kinds() -> None:
    assert set(MEASURED.workloads) == set(KINDS)
    assert all(set(row) <= set(KINDS) for row in MEASURED.matrix.values())


def test_uniform() -> None:
    truth = uniform(0.8)
    assert {truth.pair(a, b) for a in KINDS for b in KINDS} == {0.8}
    assert set(truth.workloads) == set(KINDS)
    for nonsense in (0, -1, 1.01, float("nan")):
        with pytest.raises(InputError, match="not a throughput"):
            uniform(nonsense)


def test_kind_of() -> None:
    assert [kind_of(name) for name in ("gcn[3]", "gcn", "a-b[1][2]")] == ["gcn", "gcn", "a-b"]


def test_a_matrix_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("workload\\beside,render, encode\nrender,0.9,\nencode,1,0.5\n")
    truth = load_interference(file)
    assert (truth.name, truth.workloads) == ("mine", ("render", "encode"))
    assert truth.pair("render[1]", "render[2]") == 0.9
    assert truth.pair("render[1]", "encode[0]") == 0.95
    assert truth.pair("encode[0]", "render[0]") == 1


def test_all_problems_of_a_matrix_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "m.csv"
    file.write_text("w,a,b,c,c\na,1.5,x,1,1\nb,1,1\na,nan,1,1,-2\n,1,1,1,1\n")
    with pytest.raises(InputError) as caught:
        load_interference(file)
    found = "\n".join(str(problem) for problem in caught.value.problems)
    for message in (
        "m.csv:1: column 'c' is there twice",
        "m.csv:2: a: 1.5 is more than 1",
        "m.csv:2: b: 'x' is not a number",
        "m.csv:3: has 3 cells, the header has 5",
        "m.csv:4: w: 'a' is there twice",
        "m.csv:4: a: 'nan' is not a finite number",
        "m.csv:4: c: -2 is not positive",
        "m.csv:5: w: is missing",
        "c: has no row of its own",
    ):
        assert message in found, (message, found)


@pytest.mark.parametrize("content", ["", "workload\n", "workload,a\n"])
def test_no_matrix_at_all(tmp_path: Path, content: str) -> None:
    file = tmp_path / "m.csv"
    file.write_text(content)
    with pytest.raises(InputError):
        load_interference(file)
