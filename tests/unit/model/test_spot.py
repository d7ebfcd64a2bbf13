"""Types on spot by name, and what that name says of them everywhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eva.model.catalog import InstanceType
from eva.model.ids import Workload
from eva.model.jobs import JobSpec, StandaloneThroughput, TaskSpec
from eva.model.resources import Demand, Resources
from eva.model.spot import is_spot, on_demand, on_spot

ANYWHERE, ON_C7I = Resources(1, 4_000, 1_024), Resources(0, 2_000, 1_024)


def test_a_name_on_spot_leads_back_to_the_machine() -> None:
    assert on_spot("g5.xlarge") == "g5.xlarge:spot"
    assert on_demand(on_spot("g5.xlarge")) == on_demand("g5.xlarge") == "g5.xlarge"
    assert (is_spot("g5:spot"), is_spot("g5"), is_spot("spot")) == (True, False, False)


@pytest.mark.parametrize("family", ["g5", "c7i"])
def test_what_allows_spot_needs_there_what_it_needs_on_demand(family: str) -> None:
    demand = Demand(ANYWHERE, (("c7i", ON_C7I),), spot=True)
    assert demand.on(on_spot(family)) == demand.on(family) is not None


def test_what_does_not_allow_spot_cannot_run_there() -> None:
    demand = Demand(ANYWHERE, (("c7i", ON_C7I),))
    assert demand.on("g5:spot") is demand.on("c7i:spot") is None


def test_what_runs_on_some_families_only_runs_on_no_other_on_spot() -> None:
    demand = Demand(None, (("c7i", ON_C7I),), spot=True)
    assert (demand.on("c7i:spot"), demand.on("g5:spot")) == (ON_C7I, None)


def test_allowing_spot_makes_another_demand() -> None:
    demand = Demand(ANYWHERE)
    assert replace(demand, spot=True) != demand
    assert len({demand, replace(demand, spot=True)}) == 2


def test_a_machine_on_spot_is_as_fast() -> None:
    speed = StandaloneThroughput(1.0, (("c7i", 2.0),))
    assert (speed.on("c7i:spot"), speed.on("g5:spot")) == (2.0, 1.0)


def test_a_job_allows_spot_if_one_of_its_tasks_does() -> None:
    task = TaskSpec(Workload("w"), Demand(ANYWHERE))
    willing = replace(task, demand=replace(task.demand, spot=True))
    assert not JobSpec("j", (task,)).spot
    assert JobSpec("j", (task, willing)).spot


def test_the_bill_leaves_out_the_risk_and_the_cloud_hears_its_own_name() -> None:
    kind = InstanceType("g5.xlarge:spot", "g5:spot", ANYWHERE, 510_000, risk_micros=10_000)
    assert (kind.spot, kind.billed_micros) == (True, 500_000)
    assert (kind.machine.name, kind.machine.family) == ("g5.xlarge", "g5")
    machine = kind.machine
    assert machine.machine is machine
