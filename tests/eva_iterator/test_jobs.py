"""Whole processes: asked, checkpointed, restored elsewhere; not one step lost or done twice."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from eva_iterator import CHECKPOINTED_EXIT_CODE, latest_complete
from eva_iterator.protocol import Checkpointed

from tests.eva_iterator.worker import PATIENCE_S, MiniWorker, poll, task_variables
from tests.support.requirements import require

JOBS = Path(__file__).parent / "jobs"


@contextlib.contextmanager
def started(job: str, *arguments: object, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A job process that is gone afterwards, whatever the test did."""
    command = [sys.executable, str(JOBS / job), *map(str, arguments)]
    with subprocess.Popen(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def finish(process: subprocess.Popen[str], patience_s: float = 60) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=patience_s)
    return process.returncode, out, err


def log_lines(job_dir: Path) -> list[str]:
    log = job_dir / "steps.log"
    return log.read_text().splitlines() if log.exists() else []


def wait_for_steps(job_dir: Path, steps: int) -> None:
    poll(lambda: len(log_lines(job_dir)) >= steps, patience_s=90)  # importing torch takes its time


def test_moved_twice_by_request(tmp_path: Path, socket_path: Path) -> None:
    answered: list[Checkpointed] = []
    with MiniWorker(socket_path) as worker:
        for epoch, until in ((1, 20), (2, 70)):
            variables = task_variables(tmp_path, epoch, socket_path)
            with started("plain_job.py", 120, 0.002, **variables) as job:
                wait_for_steps(tmp_path, until)
                worker.request(epoch)
                assert finish(job) == (CHECKPOINTED_EXIT_CODE, "", "")
            done = len(log_lines(tmp_path))
            assert until <= done < 120
            answered.append(Checkpointed(epoch, f"step-{done:09d}"))
            worker.wait_for(lambda: worker.answers == answered)
        with started("plain_job.py", 120, 0, **task_variables(tmp_path, 3, socket_path)) as job:
            code, out, err = finish(job)
        worker.wait_for_steps(120)
    assert (code, out, err) == (0, "sum 7140 steps 120\n", "")
    assert log_lines(tmp_path) == [str(number) for number in range(120)]


def test_moved_by_sigterm_without_any_socket(tmp_path: Path) -> None:
    with started("plain_job.py", 60, 0.005, **task_variables(tmp_path, 1, None)) as job:
        wait_for_steps(tmp_path, 10)
        job.send_signal(signal.SIGTERM)
        assert finish(job)[0] == CHECKPOINTED_EXIT_CODE
    with started("plain_job.py", 60, 0, **task_variables(tmp_path, 2, None)) as job:
        assert finish(job)[:2] == (0, "sum 1770 steps 60\n")
    assert log_lines(tmp_path) == [str(number) for number in range(60)]


def test_a_worker_that_dies_before_the_answer_finds_it_in_manifest_and_exit_code(
    tmp_path: Path, socket_path: Path
) -> None:
    variables = task_variables(tmp_path, 1, socket_path)
    long = ("plain_job.py", 30_000, 0.002)  # a minute, if nobody asks
    with MiniWorker(socket_path) as worker, started(*long, **variables) as job:
        worker.wait_for_steps(1)
        job.send_signal(signal.SIGSTOP)
        worker.request(1)
        worker.kill()
        job.send_signal(signal.SIGCONT)
        with MiniWorker(socket_path) as restarted:
            restarted.request(1)
            assert finish(job)[0] == CHECKPOINTED_EXIT_CODE
    assert latest_complete(tmp_path / "checkpoints" / "1") is not None


def run_python(code: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


OUTSIDE = """
import os, signal, socket, sys, threading
socket.socket = None  # whoever opens one, fails
registered = []
os.register_at_fork = lambda **hooks: registered.append(hooks)
from eva_iterator import EvaIterator
iterator = EvaIterator([1, 2, 3], handle_sigterm=True)
assert [*iterator, *iterator] == [1, 2, 3, 1, 2, 3] and len(iterator) == 3
assert iterator.steps == 6 and not iterator.should_checkpoint()
assert iterator.checkpoint_dir() is None and iterator.restore_dir() is None
assert iterator.checkpoint_done("nowhere") is False
iterator.checkpoint_failed()
assert threading.active_count() == 1
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
assert registered == []
assert "torch" not in sys.modules and "transformers" not in sys.modules
print("nothing")
"""


def test_outside_eva_it_does_nothing() -> None:
    assert run_python(OUTSIDE) == "nothing\n"


FORKED = """
import os, signal, threading
from eva_iterator import EvaIterator
iterator = EvaIterator(range(5), handle_sigterm=True)
for _ in iterator: pass
child = os.fork()
if child == 0:
    for _ in iterator: pass
    assert threading.active_count() == 1
    assert not iterator.should_checkpoint()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "terminate() must end a child"
    sockets = [os.readlink("/proc/self/fd/" + name) for name in os.listdir("/proc/self/fd")
               if os.path.exists("/proc/self/fd/" + name)]
    assert not any(name.startswith("socket:") for name in sockets), sockets
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert threading.active_count() == 2
for _ in iterator: pass
print(iterator.steps)
"""


def test_a_forked_child_is_silent_and_the_parent_goes_on(tmp_path: Path, socket_path: Path) -> None:
    with MiniWorker(socket_path) as worker:
        assert run_python(FORKED, **task_variables(tmp_path, 1, socket_path)) == "10\n"
        worker.wait_for_steps(10)
        assert worker.channel.steps == 10


def torch_weights(tmp_path: Path, name: str) -> tuple[list[str], object]:
    job_dir = tmp_path / name
    return log_lines(job_dir), json.loads((job_dir / "weights.json").read_text())


def moved_and_undisturbed(
    tmp_path: Path, socket_path: Path, command: tuple[object, ...], steps: int
) -> list[str]:
    """Run a training twice, moving it once; both must see the same data and end the same."""
    for name in ("moved", "undisturbed"):
        (tmp_path / name).mkdir()
    moved = tmp_path / "moved"
    job_file, *arguments = command
    with (
        MiniWorker(socket_path) as worker,
        started(
            str(job_file), *arguments, **task_variables(tmp_path / "undisturbed", 1, None)
        ) as alone,
    ):
        with started(str(job_file), *arguments, **task_variables(moved, 1, socket_path)) as job:
            wait_for_steps(moved, steps // 3)
            worker.request(1)
            code, out, err = finish(job)
            assert code == CHECKPOINTED_EXIT_CODE, out + err
        assert len(log_lines(moved)) < steps, "it was moved in the middle"
        with started(str(job_file), *arguments, **task_variables(moved, 2, socket_path)) as job:
            code, out, err = finish(job)
            assert code == 0, out + err
        worker.wait_for_steps(steps)
        code, out, err = finish(alone)
        assert code == 0, out + err
    assert torch_weights(tmp_path, "moved") == torch_weights(tmp_path, "undisturbed")
    return log_lines(moved)


@pytest.mark.timeout(180)
def test_a_torch_training_that_is_moved_ends_at_the_same_weights(
    tmp_path: Path, socket_path: Path
) -> None:
    require(importlib.util.find_spec("torch"), "torch is not installed (pip install torch==2.13.0)")
    steps = 120
    logs = moved_and_undisturbed(tmp_path, socket_path, ("torch_job.py", 3, 160), steps)
    assert len(logs) == steps
