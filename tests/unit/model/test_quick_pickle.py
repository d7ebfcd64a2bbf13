from __future__ import annotations

import dataclasses
import pickle

import pytest

from eva.control.state import JobRecord
from eva.model.catalog import InstanceType
from eva.model.ids import InstanceId, JobId, TaskId, Workload
from eva.model.jobs import JobSpec, StandaloneThroughput, TaskDelays, TaskSpec
from eva.model.plan import PlannedInstance
from eva.model.resources import Demand, Resources
from eva.model.snapshot import InstanceView, TaskView

IT1 = InstanceType("it1", "any", Resources(4, 16_000, 249_856), 12_000_000)
SPEC = TaskSpec(
    Workload("w"), Demand.of(1, 4, 16), StandaloneThroughput(2.0, (("p3", 3.0),)), TaskDelays(1, 2)
)


@pytest.mark.parametrize(
    "value",
    [
        SPEC,
        JobSpec("job", (SPEC, SPEC), retries=2),
        TaskView(TaskId("j.0"), JobId("j"), SPEC, InstanceId("i-1"), movable=False),
        InstanceView(InstanceId("i-1"), IT1, (TaskId("j.0"),)),
        PlannedInstance(IT1, (TaskId("j.0"),), None, 7),
    ],
)
def test_values_come_back_as_they_were(value: object) -> None:
    assert pickle.loads(pickle.dumps(value, protocol=5)) == value


def test_nobody_is_asked_for_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    view = TaskView(TaskId("j.0"), JobId("j"), SPEC)
    monkeypatch.delattr(dataclasses, "fields")
    assert pickle.loads(pickle.dumps(view, protocol=5)) == view


def test_records_are_among_them() -> None:
    assert "quick_pickle" in JobRecord.__getstate__.__qualname__
