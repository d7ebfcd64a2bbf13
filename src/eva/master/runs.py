"""From definitions to orders: what a worker is told about a task, its secrets included."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from zlib import crc32

from eva.control.state import Instance, Job, Task
from eva.master.definitions import Definition
from eva.master.secrets import Vault
from eva.model.errors import InvariantError
from eva.model.ids import InstanceId, JobId
from eva.ports.runtime import Argv, ImageReference, Script
from eva.ports.storage import WorkdirDigest
from eva.ports.workers import CheckpointPolicy, DockerfileBuild, GangPlace, StartOrder, TaskRun

_FIRST_PORT, _PORTS = 20_000, 12_000
_ALONE = GangPlace()


def task_run(
    task: Task, on: Instance, definition: Definition, vault: Vault, gang: GangPlace = _ALONE
) -> TaskRun:
    program: Argv | Script | None = None
    if definition.argv is not None:
        program = Argv(definition.argv)
    elif definition.script is not None:
        program = Script(definition.script)
    named = definition.checkpoint_signal
    number = None if named is None else int(signal.Signals[f"SIG{named}"])
    # A program that saves to a place of its own accord loses nothing by being stopped.
    own_place = definition.checkpoint_path is not None
    return TaskRun(
        program=program,
        demand=task.demand(on),
        image=_image(definition),
        env=dict(definition.env) | vault.open(definition.sealed_secrets),
        workdir=None if definition.workdir is None else WorkdirDigest(definition.workdir),
        shm_mib=definition.shm_mib,
        checkpoint=CheckpointPolicy(
            grace_ms=definition.checkpoint_grace_ms,
            signal=None if own_place else number,
            restart=own_place or definition.restart,
        ),
        progress_regex=definition.progress_regex,
        window_ms=definition.window_ms,
        gang=gang,
        stop_signal=number if own_place and number is not None else signal.SIGTERM,
        stop_grace_ms=definition.checkpoint_grace_ms if own_place else TaskRun(None).stop_grace_ms,
    )


def _image(definition: Definition) -> ImageReference | DockerfileBuild | None:
    if definition.image is not None:
        return ImageReference(definition.image)
    return None if definition.dockerfile is None else DockerfileBuild(definition.dockerfile)


def gang_place(task: Task, addresses: Mapping[InstanceId, str]) -> GangPlace | None:
    """The task's place in its job; None while it is not known where all siblings will be."""
    job = task.job
    if len(job.tasks) == 1:
        return _ALONE
    ips = []
    for sibling in job.tasks:
        place = sibling.instance or sibling.origin
        if place is None or (sibling.instance is None and sibling.state.value != "done"):
            return None
        if place.id not in addresses:
            return None
        ips.append(addresses[place.id])
    return GangPlace(job.tasks.index(task), len(job.tasks), tuple(ips), _port(job))


def _port(job: Job) -> int:
    """The same for all tasks of a start, another for the next one, so that no old socket is met."""
    first = job.tasks[0]
    return _FIRST_PORT + crc32(f"{first.id}:{first.epoch}".encode()) % _PORTS


def start_order(
    task: Task,
    definitions: Mapping[JobId, Definition],
    vault: Vault,
    addresses: Mapping[InstanceId, str],
) -> StartOrder | None:
    """None while the gang is incomplete."""
    gang = gang_place(task, addresses)
    if gang is None or task.instance is None:
        return None
    definition = definitions.get(task.job.id)
    if definition is None:
        raise InvariantError(f"job {task.job.id} has no definition to start {task.id} from")
    run = task_run(task, task.instance, definition, vault, gang)
    return StartOrder(task.job.id, task.id, task.epoch, run)
