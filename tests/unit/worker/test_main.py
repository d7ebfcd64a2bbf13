"""The command line of a worker: what it is told wrongly, it says so, with exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from eva.adapters.identity.bootstrap import Bootstrap
from eva.model.errors import OperatorError
from eva.model.ids import InstanceId
from eva.model.resources import Resources
from eva.worker.devices import Inventory
from eva.worker.machine_facts import real_inventory, virtual_inventory
from eva.worker.main import main


def bootstrap(folder: Path, runtime: str = "process") -> str:
    path = folder / "bootstrap"
    path.write_text(
        Bootstrap("c", InstanceId("i-1"), "h:1", "h:2", "PEM", "token", "", runtime).encode()
    )
    return str(path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--virtual"], "--capacity"),
        (["--virtual", "--capacity", "4,x,1"], "GPUS,CPU_MILLIS,MEMORY_MIB"),
        (["--virtual", "--capacity", "1,2"], "GPUS,CPU_MILLIS,MEMORY_MIB"),
        (["--bootstrap-file", "/no/such/file"], "/no/such/file"),
    ],
)
def test_wrong_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["--bootstrap-file", bootstrap(tmp_path), *words]) == 2
    assert said in capsys.readouterr().err


def test_without_a_bootstrap(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVA_BOOTSTRAP", raising=False)
    assert main([]) == 2
    assert "not a bootstrap" in capsys.readouterr().err


def test_a_runtime_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--state", str(tmp_path), "--virtual", "--capacity", "0,1000,1", "--sweep"]
    assert main(["--bootstrap-file", bootstrap(tmp_path, "pods"), *words]) == 2
    assert "pods" in capsys.readouterr().err


def test_sweeping_where_nothing_is_left(tmp_path: Path) -> None:
    words = ["--state", str(tmp_path), "--virtual", "--capacity", "0,1000,1", "--sweep"]
    assert main(["--bootstrap-file", bootstrap(tmp_path), *words]) == 0


def test_virtual_gpus_have_names_of_their_own_on_every_instance() -> None:
    one, two = (virtual_inventory(Resources(2, 1, 1), name) for name in ("i-1", "i-2"))
    assert len({*one.gpus, *two.gpus}) == 4
    assert not one.pins


def test_a_real_machine_has_what_the_system_says() -> None:
    found: Inventory = real_inventory(None)
    assert found.capacity.cpu_millis == 1_000 * len(found.cpus)
    assert found.capacity.memory_mib > 0
    assert found.pins


def test_a_machine_without_gpus_may_have_an_nvidia_smi_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho could not communicate with the NVIDIA driver\nexit 9\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert real_inventory(Resources(0, 2_000, 4_096)).gpus == ()
    for capacity in (None, Resources(1, 2_000, 4_096)):
        with pytest.raises(OperatorError, match="NVIDIA driver"):
            real_inventory(capacity)
