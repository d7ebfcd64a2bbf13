"""What a task is started with: alone unless it has siblings to be found by."""

from __future__ import annotations

from pathlib import Path

import pytest

from eva.adapters.docker.runtime import TRAITS
from eva.model.ids import JobId, TaskId
from eva.model.resources import Resources
from eva.ports.runtime import Prepared, Script, TaskRef
from eva.ports.storage import TaskFolders
from eva.ports.workers import GangPlace, StartOrder, TaskRun
from eva.worker.devices import Devices
from eva.worker.environment import task_launch


@pytest.mark.parametrize(
    ("gang", "alone"),
    [(GangPlace(), True), (GangPlace(1, 2, ("10.0.0.1", "10.0.0.2")), False)],
)
def test_only_a_task_without_siblings_is_alone(gang: GangPlace, *, alone: bool) -> None:
    order = StartOrder(JobId("j"), TaskId("j.0"), 1, TaskRun(Script("true"), gang=gang))
    launch = task_launch(
        TaskRef("c", order.task, 1),
        order,
        Devices(Resources(0, 1_000, 1), (), ()),
        Prepared("image"),
        TaskFolders(Path("job"), Path("checkpoint"), None, None),
        None,
        Path("sockets"),
        TRAITS,
    )
    assert launch.alone is alone
    assert launch.env["MASTER_ADDR"] == ("127.0.0.1" if alone else "10.0.0.1")
