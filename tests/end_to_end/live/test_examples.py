"""The examples, submitted as a reader would."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.end_to_end.live.cluster import LiveCluster
from tests.support.images import busybox
from tests.support.requirements import REPOSITORY, require

JOBS = REPOSITORY / "examples" / "jobs"


def submitted(cluster: LiveCluster, job: Path) -> str:
    """What `eva submit -y` prints for this job, which has to finish."""
    answer = subprocess.run(
        [sys.executable, "-c", "from eva.cli.main import main; main()", "submit", "-y", str(job)],
        env=os.environ | {"EVA_HOME": str(cluster.home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def test_a_shell_loop_with_progress_by_regex(shared_cluster: LiveCluster) -> None:
    said = submitted(shared_cluster, JOBS / "shell-loop" / "job.yaml")
    assert said.count("step ") == 20


def test_a_gang_of_two(shared_cluster: LiveCluster) -> None:
    said = submitted(shared_cluster, JOBS / "gang" / "job.yaml")
    assert "the others sent 10" in said
    assert "rank 1 has sent its share" in said


def test_demands_per_family(shared_cluster: LiveCluster) -> None:
    submitted(shared_cluster, JOBS / "per-family" / "job.yaml")
    with shared_cluster.client() as client:
        types = {each.type for each in client.instances(ended=True)}
    assert "r7i.2xlarge" in types, types


def test_pytorch_with_checkpoints(shared_cluster: LiveCluster) -> None:
    require(importlib.util.find_spec("torch"), "PyTorch (pip install torch)")
    assert "after 200 batches" in submitted(shared_cluster, JOBS / "pytorch" / "job.yaml")


def test_a_dockerfile(tmp_path: Path) -> None:
    with busybox("live") as image:
        job = shutil.copytree(JOBS / "dockerfile", tmp_path / "job")
        dockerfile = job / "Dockerfile"
        dockerfile.write_text(dockerfile.read_text().replace("busybox:1.36", image))
        cluster = LiveCluster(tmp_path / "home")
        cluster.options = replace(cluster.options, runtime="docker")
        cluster.start()
        try:
            assert "built once" in submitted(cluster, job / "job.yaml")
        finally:
            cluster.down()
        cluster.until_empty()
