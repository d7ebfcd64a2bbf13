"""What a worker is told once, when it is started."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from eva.adapters import instance_metadata
from eva.adapters.identity.bootstrap import Bootstrap
from eva.model.ids import InstanceId
from eva.ports.runtime import TaskRuntime
from eva.ports.storage import Storage
from eva.worker.devices import Inventory

REDIAL_MS = 1_000


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """`state` is a folder of this machine that survives the worker; `spot_notice` a file that
    appears there, holding the deadline in ms, when the instance is to be taken back. `lease` is the
    file that says how long the machine may live without its master, where something watches that.
    """

    bootstrap: Bootstrap
    state: Path
    address: str
    inventory: Inventory
    runtime: TaskRuntime
    storage: Storage
    clock: Callable[[], int]
    version: str
    redial_ms: int = REDIAL_MS
    lease: Path | None = None

    @property
    def instance(self) -> InstanceId:
        return self.bootstrap.instance

    @property
    def spot_notice(self) -> Path:
        return self.state / "spot-notice"

    @property
    def metadata_address(self) -> str:
        """Of the machine's metadata service; empty where its cloud has none."""
        if not self.bootstrap.metadata:
            return ""
        return os.environ.get(instance_metadata.ADDRESS_VARIABLE) or self.bootstrap.metadata
