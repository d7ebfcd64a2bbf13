"""The sketches of PROTOCOL.md do what they say: each is cut out of the document and run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from eva_iterator.manifest import verify_manifest
from eva_iterator.protocol import CHECKPOINTED_EXIT_CODE, MAX_LINE_BYTES, Checkpointed

from tests.eva_iterator.worker import PATIENCE_S, MiniWorker, task_variables
from tests.support.requirements import REPOSITORY, require

DOCUMENT = (REPOSITORY / "packages" / "eva-iterator" / "PROTOCOL.md").read_text()

# Where there is no netcat: the little of it that the sketch uses.
NETCAT = f"""#!{sys.executable}
import os, socket, sys, threading
eva = socket.socket(socket.AF_UNIX)
eva.connect(sys.argv[2])
def hear():
    while data := eva.recv(4096):
        os.write(1, data)
threading.Thread(target=hear, daemon=True).start()
while data := os.read(0, 4096):
    eva.sendall(data)
"""


def sketch(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    assert found is not None
    return found.group(1)


def run(command: list[str], variables: dict[str, str]) -> int:
    return subprocess.run(command, env=variables, timeout=PATIENCE_S, check=False).returncode


@pytest.fixture
def netcat(tmp_path: Path) -> dict[str, str]:
    """A PATH with a netcat on it."""
    if shutil.which("nc"):
        return {}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nc").write_text(NETCAT)
    (tmp_path / "bin" / "nc").chmod(0o755)
    return {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}


def test_shell_is_moved(tmp_path: Path, socket_path: Path, netcat: dict[str, str]) -> None:
    witness = tmp_path / "steps.log"
    script = f'work() {{ echo "$1" >>"{witness}"; }}\n{sketch("sh")}'
    with MiniWorker(socket_path) as worker:
        worker.request(1)
        moved = {**task_variables(tmp_path, 1, socket_path), **netcat}
        assert run(["sh", "-c", script], moved) == CHECKPOINTED_EXIT_CODE
        done = len(witness.read_text().splitlines())
        worker.wait_for(lambda: worker.answers == [Checkpointed(1, str(done))])
        folder = tmp_path / "checkpoints" / "1" / str(done)
        assert verify_manifest(folder).step == done
        restored = {**task_variables(tmp_path, 2, socket_path), **netcat}
        assert restored["EVA_RESTORE_DIR"] == str(folder)
        assert run(["sh", "-c", script], restored) == 0
    assert witness.read_text().split() == [str(step) for step in range(300)]


def test_python(tmp_path: Path, socket_path: Path) -> None:
    with MiniWorker(socket_path) as worker:
        code = f"work = abs\n{sketch('python')}"
        assert run([sys.executable, "-c", code], task_variables(tmp_path, 1, socket_path)) == 0
        worker.wait_for_steps(300)


def test_c(tmp_path: Path, socket_path: Path) -> None:
    require(shutil.which("cc"), "no C compiler (cc)")
    source, program = tmp_path / "task.c", tmp_path / "task"
    source.write_text(sketch("c") + "void work(long step) { (void)step; }\n")
    assert run(["cc", "-Wall", "-o", str(program), str(source)], dict(os.environ)) == 0
    with MiniWorker(socket_path) as worker:
        assert run([str(program)], task_variables(tmp_path, 1, socket_path)) == 0
        worker.wait_for_steps(300)


def test_figures_of_the_document_are_those_of_the_code() -> None:
    assert f"at most {MAX_LINE_BYTES} bytes" in DOCUMENT
    assert f"exits with code {CHECKPOINTED_EXIT_CODE}" in DOCUMENT
