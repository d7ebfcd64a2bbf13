"""Masters and workers killed while real tasks run."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from tests.end_to_end.live.cluster import LiveCluster, counting_job
from tests.end_to_end.live.kill_soak import soak


def test_masters_killed_at_random_moments(tmp_path: Path) -> None:
    soak(tmp_path, kills=4, seed=4, say=lambda _: None)


def test_a_killed_worker_comes_back_to_its_task(cluster: LiveCluster) -> None:
    job = cluster.submit(counting_job("steady", 100))
    cluster.until(lambda client: client.job(job).state == "running")
    time.sleep(0.5)
    for pid in workers_of(cluster):
        os.kill(pid, signal.SIGKILL)
    cluster.until_over([job])
    assert cluster.steps(job) == list(range(1, 101))
    assert list(cluster.starts(job).values()) == [1]
    assert cluster.unpaid() == 0


def workers_of(cluster: LiveCluster) -> list[int]:
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    return [
        int(line.split()[0])
        for line in listed.stdout.splitlines()
        if "eva.worker" in line and str(cluster.home) in line
    ]
