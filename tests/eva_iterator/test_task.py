"""One task against one worker over a real socket: steps, requests, answers, disappearances."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path

import pytest
from eva_iterator import CheckpointError, EvaIteratorError, verify_manifest, write_manifest
from eva_iterator.environment import Environment
from eva_iterator.protocol import Checkpointed, CheckpointFailed

from tests.eva_iterator.conftest import TaskMaker
from tests.eva_iterator.worker import MiniWorker, poll


def test_steps_are_reported_with_a_rate(make_task: TaskMaker, socket_path: Path) -> None:
    with MiniWorker(socket_path) as worker:
        task = make_task()
        worker.wait_for(lambda: worker.channel.listening)
        assert worker.channel.steps is None, "start-up is no step"
        for _ in range(20):
            task.steps += 5
            worker.wait_for_steps(task.steps)
        assert worker.rate() is not None


def test_the_last_steps_are_reported_on_leaving(make_task: TaskMaker, socket_path: Path) -> None:
    with MiniWorker(socket_path) as worker:
        task = make_task()
        task.steps = 12345
        task.close()
        worker.wait_for_steps(12345)


def test_a_worker_that_restarts_gets_count_and_window(
    make_task: TaskMaker, socket_path: Path
) -> None:
    with MiniWorker(socket_path) as worker:
        task = make_task()
        for steps in (10, 20, 30):
            task.steps = steps
            worker.wait_for_steps(steps)
    task.steps = 35
    with MiniWorker(socket_path) as restarted:
        restarted.wait_for_steps(35)
        points = [count for _, count in restarted.channel.history.points()]
        assert points[0] <= 20, "the window from before the restart was told again"
        assert restarted.rate() is not None


def test_the_worker_may_come_late(make_task: TaskMaker, socket_path: Path) -> None:
    task = make_task()
    task.steps = 7
    with MiniWorker(socket_path) as worker:
        worker.wait_for_steps(7)


def test_asked_answered_and_gone(make_task: TaskMaker, socket_path: Path, tmp_path: Path) -> None:
    with MiniWorker(socket_path) as worker:
        task = make_task()
        task.steps = 42
        assert not task.should_checkpoint()
        worker.request(3)
        poll(task.should_checkpoint)
        folder = task.checkpoint_dir()
        assert folder is not None
        assert folder == task.checkpoint_dir(), "asking twice gives the same folder"
        (folder / "state").write_text("42")
        with pytest.raises(SystemExit) as leaving:
            task.checkpoint_done()
        assert leaving.value.code == 85
        worker.wait_for(lambda: worker.answers == [Checkpointed(3, "step-000000042")])
        assert verify_manifest(tmp_path / "checkpoints/1/step-000000042").step == 42


def test_staying_is_possible_and_a_repeated_request_is_answered_again(
    make_task: TaskMaker, socket_path: Path
) -> None:
    with MiniWorker(socket_path) as worker:
        task = make_task()
        worker.request(3)
        poll(task.should_checkpoint)
        task.checkpoint_dir()
        assert task.checkpoint_done(leave=False) is True
        worker.wait_for(lambda: worker.answers == [Checkpointed(3, "step-000000000")])
        assert not task.should_checkpoint()
    with MiniWorker(socket_path) as restarted:
        restarted.request(3)
        restarted.wait_for(lambda: restarted.answers == [Checkpointed(3, "step-000000000")])
        restarted.request(4)
        poll(task.should_checkpoint)


def test_a_regular_checkpoint_does_not_stop_the_task(
    make_task: TaskMaker, socket_path: Path
) -> None:
    with MiniWorker(socket_path) as worker:
        task = make_task()
        worker.wait_for(lambda: worker.channel.listening)
        assert task.checkpoint_done(task.checkpoint_dir()) is False
        worker.wait_for(lambda: worker.answers == [Checkpointed(0, "step-000000000")])
        assert task.checkpoint_dir() != task.environment.checkpoint_dir
        assert str(task.checkpoint_dir()).endswith("step-000000000.2"), "what is complete is kept"


def test_a_request_is_taken_back(make_task: TaskMaker, socket_path: Path) -> None:
    with MiniWorker(socket_path) as worker:
        task = make_task()
        worker.request(3)
        poll(task.should_checkpoint)
        worker.cancel()
        poll(lambda: not task.should_checkpoint())
        assert task.checkpoint_done(task.checkpoint_dir()) is False, "it goes on"


def test_a_request_dies_with_its_worker(make_task: TaskMaker, socket_path: Path) -> None:
    with MiniWorker(socket_path) as worker:
        task = make_task()
        worker.request(3)
        poll(task.should_checkpoint)
    poll(lambda: not task.should_checkpoint())


def test_failure_is_told_and_the_task_goes_on(make_task: TaskMaker, socket_path: Path) -> None:
    with MiniWorker(socket_path) as worker:
        task = make_task()
        worker.request(3)
        poll(task.should_checkpoint)
        task.checkpoint_failed("disk is\nfull")
        worker.wait_for(lambda: worker.answers == [CheckpointFailed(3, "disk is full")])
        assert not task.should_checkpoint()


def test_without_a_place_to_write_the_request_fails_by_itself(
    make_task: TaskMaker, socket_path: Path
) -> None:
    with MiniWorker(socket_path) as worker:
        task = make_task(EVA_CHECKPOINT_DIR="")
        worker.request(3)
        worker.wait_for(lambda: len(worker.answers) == 1)
        assert worker.answers == [CheckpointFailed(3, "EVA_CHECKPOINT_DIR is not set")]
        assert not task.should_checkpoint()
        assert task.checkpoint_dir() is None
        assert task.checkpoint_done() is False


def test_checkpoints_written_elsewhere_are_copied(
    make_task: TaskMaker, socket_path: Path, tmp_path: Path
) -> None:
    task = make_task(EVA_SOCKET="")
    root = task.environment.checkpoint_dir
    assert root is not None
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model.pt").write_text("first")
    for _ in range(2):
        task.checkpoint_done(tmp_path / "run" / "model.pt")
        task.checkpoint_done(tmp_path / "run")
        task.steps += 1
    (tmp_path / "run" / "model.pt").write_text("overwritten")
    for folder in root.iterdir():
        verify_manifest(folder)
        assert (folder / "model.pt").read_text() == "first"
    assert len(list(root.iterdir())) == 4
    with pytest.raises(CheckpointError, match="write the checkpoint first"):
        task.checkpoint_done(tmp_path / "missing")


def test_files_inside_the_fresh_folder_are_not_copied(make_task: TaskMaker) -> None:
    task = make_task(EVA_SOCKET="")
    folder = task.checkpoint_dir()
    assert folder is not None
    (folder / "model.pt").write_text("x")
    task.checkpoint_done(folder / "model.pt")
    assert [entry.path for entry in verify_manifest(folder).files] == ["model.pt"]


def test_the_count_goes_on_from_the_checkpoint(make_task: TaskMaker, tmp_path: Path) -> None:
    write_manifest(tmp_path, step=900)
    task = make_task(EVA_SOCKET="", EVA_RESTORE_DIR=str(tmp_path))
    assert task.steps == 900
    assert task.restore_dir() == tmp_path
    with pytest.raises(CheckpointError, match="not complete"):
        make_task(EVA_RESTORE_DIR=str(tmp_path / "missing"))


def test_only_the_leading_process_talks_and_writes(make_task: TaskMaker) -> None:
    threads = threading.active_count()
    task = make_task(LOCAL_RANK="1")
    assert threading.active_count() == threads
    assert task.checkpoint_done() is False
    assert task.environment.checkpoint_dir is not None
    assert not task.environment.checkpoint_dir.exists()
    with pytest.raises(SystemExit):
        task.checkpoint_done(asked=True)


def test_a_socket_that_nobody_reads_delays_nobody(make_task: TaskMaker, socket_path: Path) -> None:
    """The kernel's buffer fills; the loop goes on, and an answer waits no longer than it says."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(socket_path))
        listener.listen(0)
        task = make_task()
        assert task.checkpoint_done(task.checkpoint_dir()) is False
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.recv(7) == b"hello 1"


def test_sigterm_is_a_request(make_task: TaskMaker) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: heard.append(number))
    try:
        task = make_task(EVA_SOCKET="")
        task.handle_sigterm()
        task.handle_sigterm()
        os.kill(os.getpid(), signal.SIGTERM)
        assert task.should_checkpoint()
        assert heard == []
        task.checkpoint_failed()
        assert not task.should_checkpoint()
        os.kill(os.getpid(), signal.SIGTERM)
        assert task.should_checkpoint()
        os.kill(os.getpid(), signal.SIGTERM)
        assert heard == [signal.SIGTERM], "the second does what it did before"
        with pytest.raises(SystemExit):
            task.checkpoint_done(task.checkpoint_dir())
    finally:
        signal.signal(signal.SIGTERM, before)


def test_sigterm_outside_eva_is_left_alone(make_task: TaskMaker) -> None:
    before = signal.getsignal(signal.SIGTERM)
    make_task(EVA_SOCKET="", EVA_CHECKPOINT_DIR="").handle_sigterm()
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_needs_the_main_thread(make_task: TaskMaker) -> None:
    task, raised = make_task(EVA_SOCKET=""), []

    def elsewhere() -> None:
        with pytest.raises(EvaIteratorError, match="in the main thread") as caught:
            task.handle_sigterm()
        raised.append(caught.value)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(raised) == 1


@pytest.mark.parametrize(("text", "window_ms"), [("", 600_000), ("30", 30_000), ("0.5", 500)])
def test_the_window_is_the_users(text: str, window_ms: int) -> None:
    assert Environment.read({"EVA_WINDOW_S": text}).window_ms == window_ms


@pytest.mark.parametrize("text", ["0", "-1", "ten", "nan", "inf"])
def test_a_bad_window_is_named(text: str) -> None:
    with pytest.raises(EvaIteratorError, match=f"EVA_WINDOW_S is '{text}'"):
        Environment.read({"EVA_WINDOW_S": text})
