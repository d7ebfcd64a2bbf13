"""What this machine has, asked of the system itself."""

from __future__ import annotations

import os
import shutil
import subprocess

from eva.model.errors import OperatorError
from eva.model.resources import Resources
from eva.model.units import MILLIS_PER_CPU
from eva.worker.devices import Inventory

_MIB = 1024 * 1024
_ASK_TIMEOUT_S = 30


def real_inventory(capacity: Resources | None) -> Inventory:
    """All of this machine, accounted as `capacity` where a catalog says what it is.

    A catalog that says that there are no GPUs is believed: images that are made for them have an
    nvidia-smi on machines without any too, and there it fails.
    """
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    gpus = () if capacity is not None and not capacity.gpus else _gpu_uuids()
    if capacity is None:
        memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MIB
        capacity = Resources(len(gpus), len(cpus) * MILLIS_PER_CPU, memory_mib)
    if capacity.gpus > len(gpus):
        raise OperatorError(
            f"this instance is to have {capacity.gpus} GPUs and nvidia-smi finds {len(gpus)}: "
            "install the driver, or use --virtual on a machine that only plays the part"
        )
    return Inventory(capacity, cpus, gpus)


def virtual_inventory(capacity: Resources, instance: str) -> Inventory:
    """Capacity that is only accounted for: the machine is shared, so nobody is pinned."""
    gpus = tuple(f"GPU-virtual-{instance}-{index}" for index in range(capacity.gpus))
    return Inventory(capacity, (), gpus)


def _gpu_uuids() -> tuple[str, ...]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    asked = subprocess.run(  # noqa: S603  a fixed command
        [program, "--query-gpu=uuid", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        timeout=_ASK_TIMEOUT_S,
        check=False,
    )
    if asked.returncode != 0:
        raise OperatorError(
            f"nvidia-smi fails ({asked.stderr.strip() or asked.stdout.strip()}): reinstall the "
            "driver, or remove nvidia-smi if this machine has no GPU"
        )
    return tuple(line.strip() for line in asked.stdout.splitlines() if line.strip())
