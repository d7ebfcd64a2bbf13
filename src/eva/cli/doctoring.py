"""`eva doctor`: is there on this machine what Eva needs, and does the cluster answer?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import typer

from eva.cli.connecting import HomeOption, client_for, home_folder
from eva.cli.console import JsonOption, print_json


def doctor(home: HomeOption = None, json: JsonOption = False) -> None:
    """Check what Eva needs on this machine.

    Exit code 1 where something has to be mended.
    """
    folder = home_folder(home)
    findings = [check(folder, home) for check in _CHECKS]
    if json:
        print_json([{"what": what, "ok": ok, "say": say} for what, ok, say in findings])
    else:
        for what, ok, say in findings:
            typer.echo(f"{'ok  ' if ok else 'MEND'} {what}: {say}")
    if not all(ok for _, ok, _ in findings):
        raise typer.Exit(1)


_DOCKER_WITHIN_S = 20.0
_Finding = tuple[str, bool, str]


def _check_python(_folder: Path, _home: str | None) -> _Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return "Python", sys.version_info >= (3, 11), version


def _check_extra(_folder: Path, _home: str | None) -> _Finding:
    import importlib.util

    wanted = ("eva_iterator", "fastapi", "grpc", "uvicorn")
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    remedy = "pip install eva-iterator 'eva-scheduler[server]'"
    return "server packages", not missing, f"missing {missing}: {remedy}" if missing else "there"


def _check_home(folder: Path, _home: str | None) -> _Finding:
    what = f"home {folder}"
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir():
        return what, False, f"{nearest} is no folder: choose another with --home or EVA_HOME"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return what, False, f"{nearest} is not writable: choose another with --home or EVA_HOME"
    free_gb = shutil.disk_usage(nearest).free / 1024**3
    return what, free_gb > 1, f"writable, {free_gb:.1f} GB free (1 GB at least)"


def _check_master(_folder: Path, home: str | None) -> _Finding:
    from eva.model.errors import EvaError

    try:
        with client_for(home) as client:
            cluster = client.cluster()
    except EvaError as error:
        return "master", False, str(error)
    return "master", True, f"answers, {cluster.live_jobs} live jobs, policy {cluster.policy}"


def _check_docker(_folder: Path, _home: str | None) -> _Finding:
    """Only jobs with an image or a Dockerfile need it, so its absence is no fault."""
    found = shutil.which("docker")
    if found is None:
        return "Docker", True, "not here: needed for jobs with an image or a dockerfile only"
    asked = subprocess.run(  # noqa: S603  found on the user's own PATH
        [found, "version", "--format", "{{.Server.Version}}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=_DOCKER_WITHIN_S,
    )
    if asked.returncode != 0:
        said = (asked.stderr.strip().splitlines() or ["no word"])[-1]
        return "Docker", True, f"{found} is here, its daemon does not answer ({said})"
    return "Docker", True, f"{asked.stdout.strip()}, for eva up --runtime docker"


def _check_mounts(_folder: Path, _home: str | None) -> _Finding:
    """What mounting s3:// storage takes; where it is not there, files are copied."""
    tool = next((name for name in ("rclone", "s3fs") if shutil.which(name)), None)
    if tool is None or not Path("/dev/fuse").exists():
        return "S3 mounts", True, "no FUSE with rclone or s3fs: s3:// storage is copied in and out"
    return "S3 mounts", True, f"{tool}, for s3:// storage"


_CHECKS: tuple[Callable[[Path, str | None], _Finding], ...] = (
    _check_python,
    _check_extra,
    _check_home,
    _check_master,
    _check_docker,
    _check_mounts,
)
