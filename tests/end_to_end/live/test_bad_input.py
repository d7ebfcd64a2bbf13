"""Whatever is wrong is named, with what to do about it, and nothing that was accepted is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eva.master.client import Connection
from tests.end_to_end.live.cluster import LiveCluster, counting_job
from tests.end_to_end.live.commands import read, run


def test_what_is_no_job_file(shared_cluster: LiveCluster, tmp_path: Path) -> None:
    home = shared_cluster.home
    before = read(home, "queue", "--all")
    (tmp_path / "binary.yaml").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "huge.yaml").write_text("run: x\n" + "# more\n" * 200_000)
    (tmp_path / "bad.yaml").write_text("run: [a\nname: :\n")
    os.mkfifo(tmp_path / "pipe")
    for name, said in {
        "": "is a folder; name the file in it",
        "none.yaml": "no such file",
        "binary.yaml": "is not UTF-8 text",
        "huge.yaml": "is larger than 262,144 characters",
        "bad.yaml": "bad.yaml:2: is not valid YAML",
        "pipe": "is a pipe that nobody writes to",
    }.items():
        assert said in run(home, "submit", "-y", str(tmp_path / name), code=2), name
    assert read(home, "queue", "--all") == before


def test_a_key_that_was_used_before(shared_cluster: LiveCluster, tmp_path: Path) -> None:
    home = shared_cluster.home
    file = tmp_path / "job.yaml"
    file.write_text(counting_job("keyed", 1))
    submit = ("submit", "-y", "--detach", "--key", "nightly-7", str(file))
    first = run(home, *submit).splitlines()[0]
    again = run(home, *submit).splitlines()[0]
    assert again == f"{first.rstrip('.')} (again: this key was submitted before)."
    file.write_text(counting_job("keyed", 2))
    job = first.split()[1].rstrip(".")
    assert f"'nightly-7' was used for {job}, with another job file" in run(home, *submit, code=2)
    shared_cluster.until_over([job])


@pytest.mark.parametrize(
    ("env", "said", "code"),
    [
        ({"EVA_URL": "example.org"}, "EVA_URL: 'example.org' is no address", 2),
        ({"EVA_URL": "http://127.0.0.1:1"}, "no master answers at http://127.0.0.1:1", 1),
        ({"EVA_URL": "https://x", "EVA_CERTIFICATE": "/none.pem"}, "certificate /none.pem", 1),
        ({"EVA_URL": "http://127.0.0.1:1", "EVA_TOKEN": "évå"}, "EVA_TOKEN: holds", 2),
    ],
)
def test_an_address_that_is_none(tmp_path: Path, env: dict[str, str], said: str, code: int) -> None:
    assert said in run(tmp_path, "queue", code=code, **env)


def test_a_wrong_token_elsewhere(shared_cluster: LiveCluster, tmp_path: Path) -> None:
    url = Connection.read(shared_cluster.home).url
    assert "the token is missing" in run(tmp_path, "queue", code=1, EVA_URL=url)
    said = run(tmp_path, "queue", code=1, EVA_URL=url, EVA_TOKEN="eva_wrong")
    assert "the token is not known here" in said
    assert "elsewhere set EVA_TOKEN" in said


def test_a_home_that_takes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = run(tmp_path / "file", "up", "--port", "0", code=1)
    assert f"{tmp_path / 'file'} cannot be written to" in said
    assert "choose another with --home" in said
    assert "is no folder" in run(tmp_path / "file", "queue", code=1)
    assert "MEND home" in run(tmp_path / "file", "doctor", code=1)


def test_up_comes_back_after_its_own_token_is_gone(cluster: LiveCluster) -> None:
    home = cluster.home
    job = cluster.submit(counting_job("kept", 100))
    cluster.until(lambda client: client.job(job).state == "running")
    run(home, "token", "revoke", "local")
    assert "run `eva up`" in run(home, "queue", code=1)
    up = ("up", "--port", "0", "--round", "1", "--delay-scale", "0.005")
    assert "The cluster is up" in run(home, *up)
    (home / "client.json").write_text("{")
    assert "run `eva up` again" in run(home, "queue", code=1)
    assert "The cluster is up" in run(home, *up)
    cluster.until_over([job])
    assert cluster.steps(job) == list(range(1, 101))
    assert cluster.process is not None
    cluster.process.wait()  # ended, and followed by others that are not ours to wait for
    cluster.process = None


def test_names_of_tasks_and_jobs_that_are_none(shared_cluster: LiveCluster) -> None:
    home = shared_cluster.home
    job = shared_cluster.submit(counting_job("named", 1, nodes=2))
    said = run(home, "logs", f"{job}.2", code=2)
    assert f"no task '{job}.2' of {job}; its tasks are {job}.0 to {job}.1" in said
    shared_cluster.until_over([job])
    assert f"its tasks are {job}.0 to {job}.1" in run(home, "logs", f"{job}.2", code=2)
    assert f"[{job}.1] rank 1 is done" in run(home, "logs", job)
    assert "is done" in run(home, "logs", "-f", f"{job}.1")
    assert f"did you mean '{job}'?" in run(home, "status", "name-1", code=2)
    assert f"{job} is over, it is finished" in run(home, "explain", job)


def test_what_leads_out_of_the_job_folder_stays_where_it_is(
    shared_cluster: LiveCluster, tmp_path: Path
) -> None:
    """A job folder from somebody else must not take along what is beside it."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("hush")
    folder = tmp_path / "job"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "link").symlink_to(tmp_path / "private")
    (folder / "link").symlink_to(tmp_path / "private")
    for fields in ("workdir: link", "workdir: data", "file_mounts: {in: data}"):
        (folder / "job.yaml").write_text(f"run: x\n{fields}\n")
        said = run(shared_cluster.home, "submit", "-y", str(folder / "job.yaml"), code=2)
        assert "leads out of" in said, fields


def test_names_that_are_no_names_reach_no_other_path(shared_cluster: LiveCluster) -> None:
    home = shared_cluster.home
    assert "cannot be a name" in run(home, "token", "make", "red\x1b[31m", code=2)
    assert "there is no job '?cancel=1'" in run(home, "status", "?cancel=1", code=2)
