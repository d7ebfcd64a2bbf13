"""The callbacks against stand-ins that call them as the frameworks do."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from eva_iterator import task as task_module
from eva_iterator import verify_manifest
from eva_iterator.task import Task

from tests.eva_iterator.conftest import TaskMaker
from tests.eva_iterator.worker import PATIENCE_S, MiniWorker, poll
from tests.support.requirements import require

INTEGRATIONS = "eva_iterator.integrations"


@pytest.fixture
def current(make_task: TaskMaker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Task]:
    """The task that the callbacks find; and the integrations are imported anew."""
    task = make_task()
    for name in ("huggingface", "lightning"):
        monkeypatch.delitem(sys.modules, f"{INTEGRATIONS}.{name}", raising=False)
    monkeypatch.setattr(task_module, "current_task", lambda: task)
    yield task
    for name in ("huggingface", "lightning"):
        sys.modules.pop(f"{INTEGRATIONS}.{name}", None)


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, base: str) -> None:
    """A module of that name with an empty base class, and packages above it."""
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        module = types.ModuleType(".".join(parts[:depth]))
        monkeypatch.setitem(sys.modules, module.__name__, module)
    setattr(sys.modules[name], base, type(base, (), {}))


class HuggingFaceStandIn:
    """The part of Trainer's loop that callbacks see: flags go in, events come out."""

    def __init__(self, callback: Any, output_dir: Path) -> None:
        self.callback = callback
        self.args = SimpleNamespace(output_dir=str(output_dir), world_size=1)
        self.state = SimpleNamespace(global_step=0)

    def begin(self) -> None:
        self.callback.on_train_begin(self.args, self.state, SimpleNamespace(), model=None)

    def step(self, *, save: bool = False) -> None:
        self.state.global_step += 1
        control = SimpleNamespace(should_save=save)
        control = self.callback.on_step_end(self.args, self.state, control, model=None) or control
        if control.should_save:
            folder = Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"
            folder.mkdir(parents=True)
            (folder / "model.safetensors").write_text(str(self.state.global_step))
            self.callback.on_save(self.args, self.state, control, model=None)


@pytest.fixture
def huggingface(current: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    stand_in(monkeypatch, "transformers", "TrainerCallback")
    module = importlib.import_module(f"{INTEGRATIONS}.huggingface")
    trainer = HuggingFaceStandIn(module.EvaCallback(), tmp_path / "output")
    trainer.begin()
    return SimpleNamespace(module=module, trainer=trainer, task=current)


def test_huggingface_saves_and_leaves_when_asked(huggingface: Any, socket_path: Path) -> None:
    with MiniWorker(socket_path) as worker:
        for _ in range(5):
            huggingface.trainer.step()
        worker.wait_for_steps(5)
        worker.request(1)
        poll(huggingface.task.should_checkpoint)
        with pytest.raises(SystemExit) as leaving:
            huggingface.trainer.step()
        assert leaving.value.code == 85
        worker.wait_for(lambda: len(worker.answers) == 1)
    folder = huggingface.task.environment.checkpoint_dir / "step-000000006"
    assert verify_manifest(folder).step == 6
    assert (folder / "model.safetensors").read_text() == "6"


def test_huggingface_regular_saves_are_recorded_or_left_alone(
    huggingface: Any, tmp_path: Path
) -> None:
    huggingface.trainer.step(save=True)
    root = huggingface.task.environment.checkpoint_dir
    verify_manifest(root / "step-000000001")
    quiet = HuggingFaceStandIn(
        huggingface.module.EvaCallback(record_saves=False), tmp_path / "other"
    )
    quiet.step(save=True)
    assert [folder.name for folder in root.iterdir()] == ["step-000000001"]


class LightningStandIn:
    """The part of Lightning's Trainer that the callback uses, alone in its world."""

    def __init__(self, callback: Any, world_size: int = 1) -> None:
        self.callback, self.world_size, self.global_step = callback, world_size, 0
        self.asked_others = 0
        self.strategy = self

    def reduce_boolean_decision(self, decision: bool, all: bool = True) -> bool:  # noqa: A002, FBT001, FBT002 (Lightning's own)
        assert not all
        self.asked_others += 1
        return decision

    def broadcast(self, value: object) -> object:
        return value

    def save_checkpoint(self, path: str) -> None:
        Path(path).write_text(str(self.global_step))

    def batch(self, index: int) -> None:
        self.global_step += 1
        self.callback.on_train_batch_end(self, None, None, None, index)


@pytest.mark.parametrize("name", ["lightning.pytorch.callbacks", "pytorch_lightning.callbacks"])
def test_lightning_saves_and_leaves_when_asked(
    name: str, current: Task, socket_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lightning", None)
    stand_in(monkeypatch, name, "Callback")
    module = importlib.import_module(f"{INTEGRATIONS}.lightning")
    trainer = LightningStandIn(module.EvaCallback())
    trainer.callback.on_train_start(trainer, None)
    with MiniWorker(socket_path) as worker:
        trainer.batch(0)
        worker.wait_for_steps(1)
        worker.request(1)
        poll(current.should_checkpoint)
        with pytest.raises(SystemExit) as leaving:
            trainer.batch(1)
        assert leaving.value.code == 85
        worker.wait_for(lambda: len(worker.answers) == 1)
    assert current.environment.checkpoint_dir is not None
    folder = current.environment.checkpoint_dir / "step-000000002"
    assert (folder / module.FILE_NAME).read_text() == "2"
    assert verify_manifest(folder).step == 2
    assert module.EvaCallback.restore_path() is None


def test_lightning_votes_now_and_then(current: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    assert current.steps == 0
    stand_in(monkeypatch, "lightning.pytorch.callbacks", "Callback")
    module = importlib.import_module(f"{INTEGRATIONS}.lightning")
    trainer = LightningStandIn(module.EvaCallback(agree_every=10), world_size=4)
    for index in range(35):
        trainer.batch(index)
    assert trainer.asked_others == 3


VOTE = """
import sys
import torch.distributed as distributed
from eva_iterator.integrations.distributed import any_process, wait_for_all
assert any_process(flag=True) and not any_process(flag=False)  # alone
rank, path = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=2)
assert any_process(flag=rank == 1)
assert not any_process(flag=False)
wait_for_all()
distributed.destroy_process_group()
"""


@pytest.mark.timeout(120)
def test_one_process_that_is_asked_is_enough(tmp_path: Path) -> None:
    require(importlib.util.find_spec("torch"), "torch is not installed (pip install torch==2.13.0)")
    command = [sys.executable, "-c", VOTE]
    with (
        subprocess.Popen([*command, "0", str(tmp_path / "rendezvous")]) as first,
        subprocess.Popen([*command, "1", str(tmp_path / "rendezvous")]) as second,
    ):
        try:
            assert (first.wait(4 * PATIENCE_S), second.wait(4 * PATIENCE_S)) == (0, 0)
        finally:
            first.kill()
            second.kill()
