"""The commands against a real master, and what they say when there is none."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from eva.master.client import Connection
from tests.end_to_end.live.cluster import LiveCluster, counting_job

_STEPS_DETACHED = 100


def run(home: Path, *words: str, code: int = 0, stdin: str = "") -> str:
    answer = subprocess.run(
        [sys.executable, "-c", "from eva.cli.main import main; main()", *words],
        env=os.environ | {"EVA_HOME": str(home)},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    said = answer.stdout + answer.stderr
    assert answer.returncode == code, said
    return said


def read(home: Path, *words: str) -> Any:
    return json.loads(run(home, *words, "--json"))


def test_the_walk_of_a_user(shared_cluster: LiveCluster, tmp_path: Path) -> None:
    home = shared_cluster.home
    file = tmp_path / "job.yaml"
    file.write_text(counting_job("walk", 400))
    said = run(home, "submit", str(file), "--detach", code=2)
    assert "nobody can be asked and nothing was done: say -y" in said
    assert not [job for job in read(home, "queue") if job["name"] == "walk"]
    run(home, "submit", "-y", str(file), "--detach")
    assert "a new instance (p3.2xlarge, $3.0600/h)" in said
    assert "adds $3.0600/h to the bill" in said
    (job,) = [job["id"] for job in read(home, "queue") if job["name"] == "walk"]
    shared_cluster.until(lambda client: client.job(job).state == "running")
    assert job in run(home, "queue")
    assert "running" in run(home, "status", job)
    (instance,) = [each for each in read(home, "instances") if f"{job}.0" in each["tasks"]]
    explained = run(home, "explain", job)
    assert "reservation price $3.06/h (p3.2xlarge alone)" in explained
    assert f"{instance['id']}, a p3.2xlarge at $3.06/h, is worth its price" in explained
    assert "rejected: " in explained
    assert run(home, "explain", instance["id"]).splitlines()[0] == explained.splitlines()[0]
    assert read(home, "top").keys() == {"cluster", "jobs", "instances"}
    assert "on its epoch 1" in run(home, "logs", job)
    run(home, "cancel", job)
    shared_cluster.until_over([job])
    assert "cancelled" in run(home, "status", job, code=1)
    assert job in run(home, "queue", "--all")
    assert "ok   master" in run(home, "doctor")


def test_exec_keeps_words_apart_and_passes_failure_on(shared_cluster: LiveCluster) -> None:
    home = shared_cluster.home
    assert "a  b;c" in run(home, "exec", "--", "echo", "a  b;c")
    assert "failed" in run(home, "exec", "--name", "fails", "--", "false", code=1)


def test_mistakes_say_what_to_do(shared_cluster: LiveCluster, tmp_path: Path) -> None:
    home = shared_cluster.home
    assert "did you mean 'run'" in run(home, "submit", "-", code=2, stdin="rum: x\n")
    impossible = "run: x\nresources: {gpus: 100}\n"
    assert "GPU" in run(home, "submit", "-y", "-", code=2, stdin=impossible)
    image = "run: x\nimage: busybox\n"
    assert "--runtime docker" in run(home, "submit", "-y", "-", code=2, stdin=image)
    assert "there is no job 'nothing'" in run(home, "status", "nothing", code=2)
    assert "run `eva up`" in run(tmp_path / "elsewhere", "queue", code=1)


def test_a_stale_token_is_refused_with_the_remedy(
    shared_cluster: LiveCluster, tmp_path: Path
) -> None:
    connection = Connection.read(shared_cluster.home)
    tmp_path.joinpath("home").mkdir()
    Connection(connection.url, "eva_stale").write(tmp_path / "home")
    assert "revoked, or is of another cluster" in run(tmp_path / "home", "queue", code=1)
    assert httpx.get(f"{connection.url}/api/v1/jobs").status_code == 401
    assert httpx.get(f"{connection.url}/api/v1/health").status_code == 200


def test_tokens_come_and_go(shared_cluster: LiveCluster) -> None:
    home = shared_cluster.home
    token = run(home, "token", "make", "ci").strip()
    url = Connection.read(home).url + "/api/v1/jobs"
    headers = {"Authorization": f"Bearer {token}"}
    assert httpx.get(url, headers=headers).status_code == 200
    assert "ci" in run(home, "token", "list")
    run(home, "token", "revoke", "ci")
    assert httpx.get(url, headers=headers).status_code == 401


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = run(tmp_path, "up", "--port", str(taken.getsockname()[1]), code=1)
    assert "another program has it" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "give --tls-cert and --tls-key"),
        (["--round", "0"], "between 0.1 s and a day"),
        (["--catalog", "papre"], "did you mean 'paper'"),
        (["--policy", "evo"], "did you mean 'eva'"),
        (["--store", "mysql://x"], "not a store"),
    ],
)
def test_serve_refuses_what_cannot_be(tmp_path: Path, words: list[str], said: str) -> None:
    assert said in run(tmp_path, "serve", "--port", "0", *words, code=2)


def test_metrics_and_openapi(shared_cluster: LiveCluster) -> None:
    connection = Connection.read(shared_cluster.home)
    headers = {"Authorization": f"Bearer {connection.token}"}
    metrics = httpx.get(f"{connection.url}/metrics", headers=headers).text
    assert "eva_billed_usd_total" in metrics
    paths = httpx.get(f"{connection.url}/api/v1/openapi.json").json()["paths"]
    assert "/api/v1/jobs/{job}/logs" in paths


@pytest.fixture
def interruptible() -> Iterator[None]:
    """What this process starts hears Ctrl-C, even if the tests run in a background that does not.

    A shell's background jobs ignore SIGINT and hand that on; a handler is not handed on.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_detaches_and_the_job_goes_on(shared_cluster: LiveCluster, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(counting_job("detached", _STEPS_DETACHED))
    submitting = subprocess.Popen(
        [sys.executable, "-c", "from eva.cli.main import main; main()", "submit", "-y", str(file)],
        env=os.environ | {"EVA_HOME": str(shared_cluster.home), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with submitting:
        assert submitting.stdout is not None
        said = ""
        while "goes on after step" not in said:  # the job's own first words
            line = submitting.stdout.readline()
            assert line, said
            said += line
        submitting.send_signal(signal.SIGINT)
        _, noted = submitting.communicate(timeout=20)
    assert submitting.returncode == 130, noted
    assert "goes on: eva logs -f" in noted
    job = said.split()[1].rstrip(".")
    shared_cluster.until_over([job])
    assert shared_cluster.steps(job) == list(range(1, _STEPS_DETACHED + 1))
