"""The tables themselves: complete, drawn, and loud about what is not in them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import pytest

from eva.control.lifecycle import (
    INSTANCE_TABLE,
    JOB_TABLE,
    TASK_TABLE,
    TERMINAL,
    InstanceState,
    JobState,
    JobStep,
    TaskState,
    TaskStep,
    mermaid,
)
from eva.model.errors import InvariantError
from tests.unit.control.bench import Bench

Table = Mapping[Any, Enum]
TABLES: list[tuple[Table, type[Enum], Enum]] = [
    (JOB_TABLE, JobState, JobState.QUEUED),
    (TASK_TABLE, TaskState, TaskState.WAITING),
    (INSTANCE_TABLE, InstanceState, InstanceState.REQUESTED),
]


@pytest.mark.parametrize(("table", "states", "start"), TABLES)
def test_every_state_is_reached_and_left(table: Table, states: type[Enum], start: Enum) -> None:
    reached = {start}
    while True:
        more = {target for (state, _), target in table.items() if state in reached} - reached
        if not more:
            break
        reached |= more
    assert reached == set(states)
    ends = {*TERMINAL, InstanceState.GONE}
    assert {state for state, _ in table} == set(states) - ends


def test_illegal_steps_tell_the_story() -> None:
    bench = Bench()
    job = bench.submit("a")
    with pytest.raises(InvariantError, match=r"task a\.0 is waiting and cannot 'started'"):
        job.tasks[0].step(TaskStep.STARTED, 5)
    with pytest.raises(InvariantError, match="job a is queued and cannot 'all run'"):
        job.step(JobStep.ALL_RUN, 5)


def test_diagrams() -> None:
    lines = mermaid(TASK_TABLE).splitlines()
    assert lines[0] == "stateDiagram-v2"
    assert "    waiting --> assigned: assign" in lines
    assert len(lines) == 1 + len(TASK_TABLE)
