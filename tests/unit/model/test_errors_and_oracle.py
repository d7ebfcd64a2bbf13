from __future__ import annotations

import pytest

from eva.model.errors import EvaError, InputError, InvariantError, Problem
from eva.model.ids import JobId, Workload, task_id
from eva.model.jobs import StandaloneThroughput
from eva.model.oracle import NO_ORACLE, Knowledge, Oracle, OracleNotGrantedError


def test_an_input_error_lists_every_problem() -> None:
    error = InputError([Problem("f:1", "is wrong"), Problem("f:2", "too")])
    assert str(error).splitlines() == ["f:1: is wrong", "f:2: too"]
    assert (error.exit_code, EvaError.exit_code) == (2, 1)


def test_an_oracle_is_cut_down_to_what_is_declared() -> None:
    oracle = Oracle({JobId("j"): 5}, lambda _a, _b: 0.5)
    timed = oracle.granted([Knowledge.REMAINING_TIME])
    assert timed.remaining_ms(JobId("j")) == 5
    with pytest.raises(OracleNotGrantedError, match="pairwise"):
        timed.pair(Workload("a"), Workload("b"))
    profiled = oracle.granted([Knowledge.PAIRWISE_PROFILE])
    assert profiled.pair(Workload("a"), Workload("b")) == 0.5
    with pytest.raises(InvariantError, match="remaining"):
        profiled.remaining_ms(JobId("j"))
    with pytest.raises(OracleNotGrantedError):
        NO_ORACLE.remaining_ms(JobId("j"))


def test_throughput_by_family() -> None:
    speed = StandaloneThroughput(2.0, (("p3", 3.0),))
    assert (speed.on("p3"), speed.on("c7i"), StandaloneThroughput().on("p3")) == (3.0, 2.0, None)
    assert task_id(JobId("train"), 1) == "train.1"
