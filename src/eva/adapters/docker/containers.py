"""A launch as a container, and a container as a status: two pure translations.

Security: no privileged mode, no Docker socket, every capability dropped, no new privileges, an
init process that reaps, limits on memory (without swap), processes and the log. A root without
capabilities writes only what root owns; give the launch a user where storage belongs to one.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Mapping
from datetime import datetime
from signal import SIGKILL
from typing import Any

from eva.model.ids import TaskId
from eva.model.units import MS_PER_SECOND
from eva.ports.runtime import (
    Argv,
    ExitKind,
    Home,
    LaunchRefusedError,
    Script,
    TaskExit,
    TaskLaunch,
    TaskPhase,
    TaskRef,
    TaskStatus,
)

CLUSTER = "eva.cluster"
INSTANCE = "eva.instance"
TASK = "eva.task"
EPOCH = "eva.epoch"
NETWORK = "eva.network"
CUSTOM = "eva.label."
SCRIPT_FOLDER, SCRIPT_NAME = "eva", "run.sh"
SIGNAL_BASE = 128  # what shells and init processes add to the number of a deadly signal
LAST_SIGNAL = 64
LOG = {"Type": "json-file", "Config": {"max-size": "32m", "max-file": "2"}}

PHASES = {
    "created": TaskPhase.STARTING,
    "running": TaskPhase.RUNNING,
    "paused": TaskPhase.RUNNING,
    "restarting": TaskPhase.RUNNING,
    "removing": TaskPhase.ENDED,
    "exited": TaskPhase.ENDED,
    "dead": TaskPhase.ENDED,
}


# ---------------------------------------------------------------------------------------- naming
def container_name(ref: TaskRef, home: Home) -> str:
    """Readable, legal, and as unique as the placement: a second start collides with the first."""
    identity = "\0".join([ref.cluster, home.instance, ref.task, str(ref.epoch)])
    digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return f"eva-{re.sub('[^a-zA-Z0-9_.-]', '-', ref.task)[:60]}-{ref.epoch}-{digest}"


def network_name(cluster: str, gang: str) -> str:
    digest = hashlib.sha256(f"{cluster}\0{gang}".encode()).hexdigest()[:12]
    return f"eva-{re.sub('[^a-zA-Z0-9_.-]', '-', gang)[:60]}-{digest}"


def home_filter(home: Home, *more: str) -> dict[str, list[str]]:
    return {"label": [f"{CLUSTER}={home.cluster}", f"{INSTANCE}={home.instance}", *more]}


def ref_of(labels: Mapping[str, str]) -> TaskRef:
    return TaskRef(labels[CLUSTER], TaskId(labels[TASK]), int(labels[EPOCH]))


# ---------------------------------------------------------------------------------------- launch
def container_settings(launch: TaskLaunch, home: Home) -> dict[str, Any]:
    """What the SDK's `create_container` takes, without the host's part."""
    labels = {
        CLUSTER: launch.ref.cluster,
        INSTANCE: home.instance,
        TASK: launch.ref.task,
        EPOCH: str(launch.ref.epoch),
        **{CUSTOM + key: value for key, value in launch.labels.items()},
    }
    if launch.network is not None:
        labels[NETWORK] = network_name(home.cluster, launch.network.name)
    settings: dict[str, Any] = {
        "image": launch.prepared.image,
        "name": container_name(launch.ref, home),
        "environment": environment(launch),
        "labels": labels,
        "stop_signal": "SIGTERM",  # whatever the image says
        **program(launch),
    }
    if launch.workdir is not None:
        settings["working_dir"] = launch.workdir
    if launch.user is not None:
        settings["user"] = launch.user
    return settings


def program(launch: TaskLaunch) -> dict[str, list[str]]:
    """Entry point and command. As lists, so that no shell comes between."""
    match launch.program:
        case None:
            return {}
        case Script(interpreter=interpreter):
            path = f"/{SCRIPT_FOLDER}/{SCRIPT_NAME}"
            return {"entrypoint": [interpreter], "command": [path]}
        case Argv(words) if words:
            return {"entrypoint": list(words[:1]), "command": list(words[1:])}
    raise LaunchRefusedError.single(str(launch.ref), "has an empty command: give `run` a program")


def environment(launch: TaskLaunch) -> dict[str, str]:
    env = {mount.variable: mount.target for mount in launch.mounts if mount.variable}
    if not launch.gpus:
        # CUDA images ask for all GPUs by this variable, and get them where the NVIDIA runtime is
        # the default one.
        env["NVIDIA_VISIBLE_DEVICES"] = "void"
    # Signals go to all processes of a task, as they do without Docker.
    return {**env, **launch.env, "TINI_KILL_PROCESS_GROUP": "1"}


def host_settings(launch: TaskLaunch, home: Home) -> dict[str, Any]:
    """What the SDK's `create_host_config` takes."""
    settings: dict[str, Any] = {
        "privileged": False,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "init": True,
        "restart_policy": {"Name": "no"},
        "auto_remove": False,  # exit codes stay until they are acknowledged
        "log_config": LOG,
        "oom_score_adj": 500,  # when the machine runs out, a task goes before its worker
        "ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
        # On the machine's own network are the machine's role at the cloud and what listens on its
        # loopback alone. Siblings on other machines have to be met there; others need not see it.
        "network_mode": "bridge" if launch.alone else "host",
        "mounts": [
            {
                "Type": "bind",
                "Source": str(mount.source),
                "Target": mount.target,
                "ReadOnly": mount.read_only,
            }
            for mount in launch.mounts
        ],
    }
    if launch.network is not None:
        settings["network_mode"] = network_name(home.cluster, launch.network.name)
    limits = launch.limits
    if limits.memory_mib is not None:
        settings["mem_limit"] = settings["memswap_limit"] = f"{limits.memory_mib}m"
    if limits.pids is not None:
        settings["pids_limit"] = limits.pids
    if limits.shm_mib is not None:
        settings["shm_size"] = f"{limits.shm_mib}m"
    if launch.cpus:
        settings["cpuset_cpus"] = ",".join(map(str, sorted(launch.cpus)))
    if launch.gpus:
        settings["device_requests"] = [
            {"device_ids": list(launch.gpus), "capabilities": [["gpu"]]},
        ]
    return settings


def script_archive(script: Script) -> bytes:
    """The script as the archive that is unpacked at the root of the container."""
    text = script.file_text().encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        folder = tarfile.TarInfo(SCRIPT_FOLDER)
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
        file = tarfile.TarInfo(f"{SCRIPT_FOLDER}/{SCRIPT_NAME}")
        file.size, file.mode = len(text), 0o555
        archive.addfile(file, io.BytesIO(text))
    return buffer.getvalue()


# ---------------------------------------------------------------------------------------- status
def status_of(info: Mapping[str, Any]) -> TaskStatus:
    """The status of an inspected container."""
    labels = info["Config"]["Labels"]
    state = info["State"]
    phase = PHASES[state["Status"]]
    if phase is TaskPhase.STARTING and state["Error"]:
        phase = TaskPhase.ENDED
    custom = {
        key.removeprefix(CUSTOM): value for key, value in labels.items() if key.startswith(CUSTOM)
    }
    ended = exit_of(state) if phase is TaskPhase.ENDED else None
    return TaskStatus(ref_of(labels), phase, ended, custom)


def exit_of(state: Mapping[str, Any]) -> TaskExit:
    """How a container ended.

    Docker keeps one number for codes and signals. Codes from 129 on are read as signals, as shells
    do. The engine's memory flag is about any process inside; a task that survived the loss of one
    and ended well, or was asked to end, did not end of it.
    """
    started = moment_ms(state["StartedAt"])
    if started is None:
        return TaskExit(ExitKind.NEVER_STARTED, detail=state["Error"] or "was never started")
    times = {"started_ms": started, "finished_ms": moment_ms(state["FinishedAt"])}
    code: int = state["ExitCode"]
    number = code - SIGNAL_BASE if SIGNAL_BASE < code <= SIGNAL_BASE + LAST_SIGNAL else None
    if state["OOMKilled"] and code != 0 and number in {None, SIGKILL}:
        shown = code if number is None else None
        return TaskExit(ExitKind.OOM_KILLED, shown, number, "passed its memory limit", **times)
    if number is not None:
        return TaskExit(ExitKind.SIGNALLED, None, number, state["Error"], **times)
    return TaskExit(ExitKind.EXITED, code, None, state["Error"], **times)


def moment_ms(text: str) -> int | None:
    """An RFC 3339 time of the engine; None for its zero."""
    if text.startswith("0001-"):
        return None
    return int(datetime.fromisoformat(text).timestamp() * MS_PER_SECOND)
