"""Every event survives the journal exactly, and folding a journal gives the state back."""

from __future__ import annotations

import json
import typing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eva.control.controller import Controller
from eva.control.events import (
    Event,
    InstanceAcquired,
    JobSubmitted,
    PlanComputed,
    TaskExited,
    ThroughputSample,
)
from eva.control.journal import EVENT_TYPES, Codec, digest, fold
from eva.model.catalog import InstanceDelays, InstanceType
from eva.model.errors import OperatorError
from eva.model.ids import InstanceId, JobId, TaskId, Workload
from eva.model.jobs import JobSpec, StandaloneThroughput, TaskDelays, TaskSpec
from eva.model.plan import Candidate, ClusterPlan, Decision, PlannedInstance, Unplaceable
from eva.model.resources import Demand, Resources
from tests.unit.control.bench import BIG, CATALOG, SMALL, Bench

CODEC = Codec(CATALOG)
STRANGE = InstanceType(
    "strange", "x", Resources(0, 1, 1), 5, InstanceDelays(1, 2, 3, 4), 2, "today"
)

resources = st.builds(Resources, *(st.integers(0, 99),) * 3)
specs = st.builds(
    TaskSpec,
    st.text(max_size=5).map(Workload),
    st.builds(Demand, resources, st.just((("c7i", Resources(0, 1, 2)),))),
    st.builds(StandaloneThroughput, st.none() | st.floats(0.1, 9), st.just((("p3", 2.5),))),
    st.builds(TaskDelays, st.integers(0, 9), st.integers(0, 9)),
)
jobs = st.builds(
    JobSpec,
    st.text(max_size=9),
    st.lists(specs, min_size=1, max_size=3).map(tuple),
    st.integers(0, 3),
    st.none() | st.integers(1, 9),
)
plans = st.builds(
    ClusterPlan,
    st.lists(
        st.builds(
            PlannedInstance,
            st.sampled_from((BIG, SMALL, STRANGE)),
            st.just((TaskId("a.0"),)),
            st.none() | st.just(InstanceId("i-1")),
        )
    ).map(tuple),
    st.just((Unplaceable(TaskId("b.0"), "too large"),)),
    st.builds(
        Decision,
        st.sampled_from(("full", "partial")),
        st.just((Candidate("full", 1, 2, 3, 4, 5),)),
        st.none() | st.floats(0, 100) | st.just(float("inf")),
    ),
)
samples = st.builds(
    ThroughputSample, st.text(max_size=5).map(TaskId), st.integers(0, 99), st.floats(0, 1e9)
)
st.register_type_strategy(JobSpec, jobs)
st.register_type_strategy(ThroughputSample, samples)
st.register_type_strategy(ClusterPlan, plans)


@given(st.one_of(*(st.builds(kind) for kind in EVENT_TYPES.values())), st.integers(0, 10**12))
def test_round_trip(event: Event, now_ms: int) -> None:
    line = CODEC.line(now_ms, event)
    assert CODEC.decode(json.loads(line)) == (now_ms, event)


def test_every_event_is_known() -> None:
    assert len(EVENT_TYPES) == len(typing.get_args(Event))


def test_folding_gives_the_state_back() -> None:
    bench = Bench()
    bench.submit("a", tasks=2)
    bench.running((BIG, ("a.0", "a.1")))
    bench.send(TaskExited(TaskId("a.0"), 1, 0))
    folded = fold(bench.journal, Controller(CATALOG))
    assert digest(folded.state) == digest(bench.state)
    folded.handle(TaskExited(TaskId("a.1"), 1, 0), bench.now_ms)
    assert digest(folded.state) != digest(bench.state)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"v": 99}, "version 99"),
        ({"event": "Earthquake"}, "unknown event 'Earthquake'"),
        ({"instance": 5}, "damaged"),
        ({"at_ms": "soon"}, "damaged"),
    ],
)
def test_what_this_version_did_not_write_is_refused(damage: dict[str, Any], message: str) -> None:
    record = CODEC.encode(1, InstanceAcquired(InstanceId("i-1"), 7))
    with pytest.raises(OperatorError, match=message):
        CODEC.decode(record | damage)


def test_instance_types_of_the_catalog_are_written_by_name() -> None:
    plan = ClusterPlan((PlannedInstance(BIG, ()), PlannedInstance(STRANGE, ())))
    instances = CODEC.encode(0, PlanComputed(1, plan))["plan"]["instances"]
    assert instances[0]["type"] == "big"
    assert instances[1]["type"]["name"] == "strange"
    with pytest.raises(OperatorError, match="'big', which catalog"):
        Codec(CATALOG.with_types((SMALL,))).decode(CODEC.encode(0, PlanComputed(1, plan)))


def test_job_specs_come_back_equal() -> None:
    spec = JobSpec("x", (TaskSpec(Workload("w"), Demand.of(1, 2, 3)),))
    _, event = CODEC.decode(CODEC.encode(0, JobSubmitted(JobId("x"), spec)))
    assert isinstance(event, JobSubmitted)
    assert event.spec == spec
