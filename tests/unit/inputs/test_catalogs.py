from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path

import pytest

from eva.inputs import catalogs
from eva.model.errors import InputError
from eva.model.resources import Resources
from tests.support.requirements import shared_folder

HEADER = "instance_type,family,gpus,cpus,memory_gb,usd_per_hour"


def write(tmp_path: Path, text: str, name: str = "types.csv") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def complaints(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        catalogs.load(write(tmp_path, text))
    return [str(problem).replace(f"{tmp_path}/", "") for problem in caught.value.problems]


def test_the_paper_in_two_readings() -> None:
    by_vcpu, by_core = catalogs.builtin("paper"), catalogs.builtin("paper-physical")
    assert len(by_vcpu) == len(by_core) == 21
    for kind in by_vcpu:
        other = by_core.get(kind.name)
        assert other is not None
        assert other.capacity.cpu_millis * 2 == kind.capacity.cpu_millis
        assert (other.hourly_micros, other.delays) == (kind.hourly_micros, kind.delays)
    p3 = by_vcpu.get("p3.2xlarge")
    assert p3 is not None
    assert p3.capacity == Resources(1, 8_000, 61 * 1_024)
    assert p3.hourly_micros == 3_060_000
    assert (p3.delays.acquire_ms, p3.delays.setup_ms) == (22_000, 151_000)


def test_the_paper_is_what_was_published() -> None:
    """Against the published table where it is at hand, else against its sums."""
    catalog = catalogs.builtin("paper")
    assert sum(kind.hourly_micros for kind in catalog) == 90_958_050
    folder = shared_folder()
    if folder is None:
        return
    with (folder / "data" / "ec2_catalog.csv").open() as file:
        for row in csv.DictReader(file):
            kind = catalog.get(row["instance_type"])
            assert kind is not None
            assert kind.capacity == Resources(
                int(row["gpus"]), 1_000 * int(row["vcpus"]), 1_024 * int(row["memory_gb"])
            )
            assert kind.hourly_micros == round(1e6 * float(row["usd_per_hour"]))
            assert kind.delays.register_worker_ms == 1_000 * int(row["register_worker_s"])


def test_aws_is_dated_and_spot_is_cheaper() -> None:
    catalog = catalogs.builtin("aws")
    assert set(catalog.families) >= {
        *("g4dn", "g5", "g6", "g6e", "p4d", "p5"),
        *("c7i", "m7i", "r7i"),
    }
    for kind in catalog:
        assert kind.price_as_of
        assert kind.spot_hourly_micros is not None
        assert kind.spot_hourly_micros < kind.hourly_micros
    within_family = {
        family: [kind for kind in catalog if kind.family == family] for family in catalog.families
    }
    for kinds in within_family.values():  # dearest first: never a larger one for less
        for dearer, cheaper in pairwise(kinds):
            assert dearer.capacity != cheaper.capacity


def test_shared_types_cost_the_same_in_both_catalogs() -> None:
    aws = catalogs.builtin("aws")
    for kind in catalogs.builtin("paper"):
        twin = aws.get(kind.name)
        assert twin is not None
        assert (twin.capacity, twin.hourly_micros) == (kind.capacity, kind.hourly_micros)


def test_a_built_in_catalog_is_always_the_same_object() -> None:
    assert catalogs.load("paper") is catalogs.builtin("paper")


def test_a_file_of_your_own(tmp_path: Path) -> None:
    catalog = catalogs.load(write(tmp_path, f"{HEADER}\nsmall,x,0,2,4,0.1\nlarge,x,1,8,61,3.06\n"))
    assert [kind.name for kind in catalog] == ["large", "small"]
    assert catalog.types[0].delays.setup_ms == 0
    assert catalog.types[0].spot_hourly_micros is None


def test_yaml_of_your_own(tmp_path: Path) -> None:
    text = (
        "instance_types:\n- instance_type: small\n  family: x\n  gpus: 0\n  cpus: 2\n"
        "  memory_gb: 4\n  usd_per_hour: 0.08925\n  spot_usd_per_hour: 0.03\n"
        "  price_as_of: 2025-01-31\n  acquire_s: 7.5\n"
    )
    (kind,) = catalogs.load(write(tmp_path, text, "types.yaml"))
    assert (kind.hourly_micros, kind.spot_hourly_micros) == (89_250, 30_000)
    assert (kind.price_as_of, kind.delays.acquire_ms) == ("2025-01-31", 7_500)


def test_which_column_is_the_cpu_capacity(tmp_path: Path) -> None:
    header = "instance_type,family,gpus,physical_cores,vcpus,memory_gb,usd_per_hour"
    path = write(tmp_path, f"{header}\na,x,0,1,2,4,0.1\n")
    assert catalogs.load(path).types[0].capacity.cpu_millis == 2_000
    assert catalogs.load(path, "physical_cores").types[0].capacity.cpu_millis == 1_000
    with pytest.raises(InputError, match="column 'cpus' is missing"):
        catalogs.load(path, "cpus")
    with pytest.raises(InputError, match="did you mean 'vcpus'"):
        catalogs.load(path, "vcpu")


def test_a_built_in_read_by_another_column() -> None:
    other = catalogs.load("paper", "physical_cores")
    assert [kind.capacity for kind in other] == [
        kind.capacity for kind in catalogs.builtin("paper-physical")
    ]


def test_every_problem_at_once(tmp_path: Path) -> None:
    found = complaints(
        tmp_path,
        f"{HEADER},price_as_of,acquire_s\n"
        "a,x,0,0,0,1,,\n"
        "b,,1,1,1,0,,\n"
        "b,x,1,1,1,-2,31.1.2025,1e9\n",
    )
    assert found == [
        "types.csv:2: has no capacity at all; state gpus, CPUs or memory_gb",
        "types.csv:3: family: is missing",
        "types.csv:3: usd_per_hour: must be more than 0 USD per hour",
        "types.csv:4: usd_per_hour: -2 is negative; USD per hour start at 0",
        "types.csv:4: acquire_s: 1e9 is more than any sensible number of seconds (604,800)",
        "types.csv:4: price_as_of: '31.1.2025' is not a date; write it as 2026-01-31",
        "types.csv:4: instance_type: 'b' is already on line 3",
    ]


def test_a_catalog_without_cpus(tmp_path: Path) -> None:
    (found,) = complaints(tmp_path, "instance_type,family,gpus,memory_gb,usd_per_hour\na,x,1,1,1\n")
    assert "a CPU column is missing (one of: cpus, vcpus, physical_cores)" in found


def test_an_unknown_name_suggests() -> None:
    with pytest.raises(InputError, match=r"did you mean 'paper'\?"):
        catalogs.load("papr")


def test_names_on_spot_are_ours_to_give(tmp_path: Path) -> None:
    found = complaints(tmp_path, f"{HEADER}\na:spot,x,0,2,4,0.1\nb,x:spot,0,2,4,0.1\n")
    assert [line.partition(" is what")[0] for line in found] == [
        "types.csv:2: instance_type: 'a:spot'",
        "types.csv:3: family: 'x:spot'",
    ]
