"""`eva worker`: one per instance, started at boot and again whenever it ends with an error.

Everything that is the cluster's comes in the bootstrap; the command line says what is this
machine's. Exit code 0 means that the instance has served its time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eva.adapters.identity.bootstrap import Bootstrap, decode_bootstrap
from eva.adapters.machine import discard
from eva.adapters.process.runtime import ProcessRuntime
from eva.model.errors import EvaError, InputError
from eva.model.resources import Resources
from eva.ports.runtime import Home, TaskPhase, TaskRuntime
from eva.worker.devices import Inventory
from eva.worker.environment import socket_root
from eva.worker.machine_facts import real_inventory, virtual_inventory
from eva.worker.settings import REDIAL_MS

BOOTSTRAP_VARIABLE = "EVA_BOOTSTRAP"
_POWEROFF = ("systemctl", "poweroff")


@dataclass(frozen=True, slots=True)
class _Options:
    bootstrap: Bootstrap
    state: Path
    inventory: Inventory
    address: str
    redial_ms: int
    poweroff: bool
    sweep: bool
    lease: Path | None

    @property
    def gpus(self) -> frozenset[str] | None:
        """Those that tasks may be given; None where they are only played."""
        return frozenset(self.inventory.gpus) if self.inventory.cpus else None


def main(argv: Sequence[str]) -> int:
    """Run a worker until it is done; the exit code."""
    try:
        options = _parse(argv)
        work = _sweep(options) if options.sweep else _serve(options)
        return asyncio.run(work)
    except EvaError as error:
        sys.stderr.write(f"eva worker: {error}\n")
        return error.exit_code


def _parse(argv: Sequence[str]) -> _Options:
    parser = argparse.ArgumentParser(prog="eva worker", description="Run tasks on this instance.")
    add = parser.add_argument
    add("--bootstrap-file", type=Path, help=f"holds the bootstrap, else ${BOOTSTRAP_VARIABLE}")
    add("--state", type=Path, default=Path("/var/lib/eva-worker"), help="kept across restarts")
    add("--capacity", help="GPUS,CPU_MILLIS,MEMORY_MIB as in the catalog; else what there is")
    add("--virtual", action="store_true", help="account for the capacity without having it")
    add("--address", default="127.0.0.1", help="where tasks on other instances reach this one")
    add("--redial-ms", type=int, default=REDIAL_MS, help="between attempts to reach the master")
    add("--poweroff", action="store_true", help="power the machine off when done")
    add(
        "--lease", type=Path, help="a file to renew while the master is there; see eva.worker.lease"
    )
    add("--sweep", action="store_true", help="only stop and remove what is left of all tasks")
    found = parser.parse_args(argv)
    bootstrap = decode_bootstrap(_bootstrap_text(found.bootstrap_file))
    capacity = None if found.capacity is None else _capacity(found.capacity)
    if found.virtual and capacity is None:
        raise InputError.single("--virtual", "needs --capacity: nothing else says how much")
    if found.virtual and capacity is not None:
        inventory = virtual_inventory(capacity, bootstrap.instance)
    else:
        inventory = real_inventory(capacity)
    return _Options(
        bootstrap,
        found.state,
        inventory,
        found.address,
        found.redial_ms,
        found.poweroff,
        found.sweep,
        found.lease,
    )


def _bootstrap_text(path: Path | None) -> str:
    if path is None:
        return os.environ.get(BOOTSTRAP_VARIABLE, "")
    try:
        return path.read_text()
    except OSError as error:
        raise InputError.single("--bootstrap-file", f"{path} cannot be read: {error}") from error


def _capacity(text: str) -> Resources:
    words = text.split(",")
    if len(words) != 3 or not all(word.isascii() and word.isdigit() for word in words):
        raise InputError.single(
            "--capacity", f"{text!r} is not GPUS,CPU_MILLIS,MEMORY_MIB, such as 4,32000,249856"
        )
    return Resources(*map(int, words))


def _runtime(options: _Options) -> TaskRuntime:
    bootstrap = options.bootstrap
    home = Home(bootstrap.cluster, bootstrap.instance)
    if bootstrap.runtime == "process":
        return ProcessRuntime(home, options.state / "tasks", options.gpus)
    if bootstrap.runtime == "docker":
        # Only here: the package is an extra, and takes a second to import.
        from eva.adapters.docker.runtime import DockerRuntime  # noqa: PLC0415

        return DockerRuntime(home, options.state / "tasks")
    raise InputError.single(
        "runtime", f"{bootstrap.runtime!r} is none that this worker knows: docker or process"
    )


async def _serve(options: _Options) -> int:
    # Only here: ending an instance waits for a sweep, which needs half as much to be imported.
    from eva.worker.serving import serve  # noqa: PLC0415

    code = await serve(
        options.bootstrap,
        options.state,
        options.address,
        options.inventory,
        _runtime(options),
        options.redial_ms,
        options.lease,
    )
    if code == 0 and options.poweroff:
        _power_off()
    return code


async def _sweep(options: _Options) -> int:
    """End every task of this instance, without the master: for who takes the instance away."""
    runtime = _runtime(options)
    for status in await runtime.adopt():
        if status.phase is not TaskPhase.ENDED:
            await runtime.stop(status.ref, 0)
        await runtime.remove(status.ref)
    await runtime.close()
    discard(socket_root(options.state))
    return 0


def _power_off() -> None:
    """Where that fails, the lease is not renewed any more, and the watch on it tries again."""
    program = shutil.which(_POWEROFF[0])
    if program is None:
        sys.stderr.write(f"eva worker: no {_POWEROFF[0]} here: this machine stays on\n")
        return
    subprocess.run([program, *_POWEROFF[1:]], check=False)  # noqa: S603  a fixed command
