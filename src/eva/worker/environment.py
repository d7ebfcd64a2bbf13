"""What a task finds around it: folders, mounts and variables."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from eva.ports.runtime import (
    GangNetwork,
    Limits,
    Mount,
    Prepared,
    RuntimeTraits,
    TaskLaunch,
    TaskRef,
)
from eva.ports.storage import TaskFolders
from eva.ports.workers import GangPlace, StartOrder
from eva.worker.devices import Devices

SOCKET_NAME = "eva.sock"
_ALONE = "127.0.0.1"  # the address of a task without siblings
_SOCKET_TARGET = "/eva/socket"
_WORKDIR_TARGET = "/eva/workdir"


def socket_root(state: Path) -> Path:
    """All sockets of a worker. A short path, for a Unix socket's may have 107 bytes."""
    whose = hashlib.sha256(str(state.absolute()).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"eva-{os.getuid()}-{whose}"


def socket_folder(state: Path, order: StartOrder) -> Path:
    """That of one task; the same after a restart."""
    which = hashlib.sha256(f"{order.task}/{order.epoch}".encode()).hexdigest()[:12]
    return socket_root(state) / which


def task_launch(
    ref: TaskRef,
    order: StartOrder,
    devices: Devices,
    prepared: Prepared,
    folders: TaskFolders,
    workdir: Path | None,
    sockets: Path,
    traits: RuntimeTraits,
) -> TaskLaunch:
    run = order.run
    seen_sockets = _SOCKET_TARGET if traits.mounts else str(sockets)
    env = {**run.env, **_names(order), **_gang(run.gang)}
    env["EVA_SOCKET"] = f"{seen_sockets}/{SOCKET_NAME}"
    env["EVA_WINDOW_S"] = str(max(1, run.window_ms // 1_000))
    network = run.gang.network
    return TaskLaunch(
        ref,
        run.program,
        prepared,
        env,
        Limits(memory_mib=run.demand.memory_mib or None, shm_mib=run.shm_mib),
        devices.cpus,
        devices.gpus,
        _mounts(folders, workdir, sockets),
        None if workdir is None else _WORKDIR_TARGET,
        None if network is None else GangNetwork(network, _alias(run.gang.rank)),
        alone=run.gang.world_size == 1,
        user=_user(traits),
    )


def _user(traits: RuntimeTraits) -> str | None:
    """In a container, whoever the worker is, so that both may write what is mounted. A worker that
    is root leaves it to the image.
    """
    return f"{os.getuid()}:{os.getgid()}" if traits.mounts and os.getuid() != 0 else None


def _mounts(folders: TaskFolders, workdir: Path | None, sockets: Path) -> tuple[Mount, ...]:
    mounts = [
        Mount(folders.job_dir, "/eva/job", variable="EVA_JOB_DIR"),
        Mount(folders.checkpoint_dir, "/eva/checkpoint", variable="EVA_CHECKPOINT_DIR"),
        Mount(sockets, _SOCKET_TARGET),
    ]
    if folders.restore_dir is not None:
        restored = Mount(
            folders.restore_dir, "/eva/restore", read_only=True, variable="EVA_RESTORE_DIR"
        )
        mounts.append(restored)
    if workdir is not None:
        mounts.append(Mount(workdir, _WORKDIR_TARGET))
    return tuple(mounts)


def _names(order: StartOrder) -> dict[str, str]:
    return {"EVA_JOB": order.job, "EVA_TASK": order.task, "EVA_EPOCH": str(order.epoch)}


def _alias(rank: int) -> str:
    return f"rank-{rank}"


def _gang(gang: GangPlace) -> dict[str, str]:
    """A task's place, in our words and in those that PyTorch and others look for."""
    nodes = gang.node_ips or (_ALONE,)
    if gang.network is not None:
        nodes = tuple(_alias(rank) for rank in range(gang.world_size))
    master = nodes[0]
    plain = {
        "RANK": str(gang.rank),
        "WORLD_SIZE": str(gang.world_size),
        "MASTER_ADDR": master,
        "MASTER_PORT": str(gang.master_port),
    }
    ours = {f"EVA_{name}": value for name, value in plain.items()}
    return {**plain, **ours, "EVA_NODE_IPS": ",".join(nodes)}
