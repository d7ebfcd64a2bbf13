"""What `eva solve` computes, before anybody decides how it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eva.inputs.task_files import TaskFile
from eva.model.catalog import Catalog
from eva.model.colocation import DEFAULT_THROUGHPUT, Entry, ThroughputTable
from eva.model.errors import InputError
from eva.model.ids import Workload
from eva.model.oracle import Knowledge, Oracle
from eva.model.plan import ClusterPlan
from eva.model.snapshot import ClusterSnapshot
from eva.scheduling.eva import EvaPolicy
from eva.scheduling.exact.bounds import lower_bound, needs_of
from eva.scheduling.explanation import Explainer, Reason
from eva.scheduling.policy import SchedulingPolicy
from eva.scheduling.spot import SpotRisk, with_spot
from eva.scheduling.valuation import Valuation
from eva.traces.interference import Interference, load_interference


@dataclass(frozen=True, slots=True)
class Expectations:
    """How fast tasks are expected to run beside each other: measured pairs, and the rest.

    A running cluster has to expect 0.95 of pairs that it never saw, and learns. A question about
    prices has nothing to learn from, so unless interference is stated none is assumed.
    """

    measured: Interference | None
    unmeasured: float

    @classmethod
    def read(cls, path: str | None, unmeasured: float | None) -> Expectations:
        if unmeasured is not None and not 0 < unmeasured <= 1:
            raise InputError.single(
                "--default-throughput", f"{unmeasured:g} is not a throughput; give one in (0, 1]"
            )
        measured = None if path is None else load_interference(Path(path))
        fallback = 1.0 if measured is None else DEFAULT_THROUGHPUT
        return cls(measured, fallback if unmeasured is None else unmeasured)

    @property
    def table(self) -> ThroughputTable:
        table = ThroughputTable(default=self.unmeasured)
        return table if self.measured is None else table.record(_entries(self.measured))


@dataclass(frozen=True, slots=True)
class Solution:
    """A plan beside what it should be compared with.

    Plan, bound and No-Packing are compared all told: the risk of interruptions is in all three.
    """

    policy: str
    catalog: Catalog
    tasks: int
    plan: ClusterPlan
    reasons: tuple[Reason, ...]
    no_packing_micros: int
    lower_bound_micros: int

    @property
    def gap(self) -> float | None:
        """How far above the bound the plan is, as a share; None where there is nothing to host."""
        if not self.lower_bound_micros:
            return None
        return self.plan.hourly_micros / self.lower_bound_micros - 1

    @property
    def saved(self) -> float | None:
        """The share of the No-Packing cost that the plan saves."""
        if not self.no_packing_micros:
            return None
        return 1 - self.plan.hourly_micros / self.no_packing_micros


def solve(
    file: TaskFile, catalog: Catalog, policy: SchedulingPolicy, expectations: Expectations
) -> Solution:
    """Plan an empty cluster with all tasks of `file` waiting; on spot too where they allow it."""
    if any(task.spec.demand.spot for task in file.tasks):
        catalog = with_spot(catalog, SpotRisk(), {})
    measured = expectations.measured
    _check_knowledge(policy, file, measured)
    oracle = Oracle(file.durations_ms, None if measured is None else measured.pair)
    snapshot = ClusterSnapshot(0, catalog, file.tasks, table=expectations.table, oracle=oracle)
    plan = policy.plan(snapshot.granting(policy.knowledge))
    explainer = Explainer(snapshot, _valuation_of(policy))
    needs = needs_of(explainer.classes)
    bound_micros = lower_bound(catalog, needs).hourly_micros if needs else 0
    return Solution(
        policy=policy.name,
        catalog=catalog,
        tasks=len(file.tasks),
        plan=plan,
        reasons=explainer.reasons(plan.instances),
        no_packing_micros=explainer.no_packing_micros,
        lower_bound_micros=bound_micros,
    )


def _check_knowledge(
    policy: SchedulingPolicy, file: TaskFile, measured: Interference | None
) -> None:
    """A policy that is given an oracle elsewhere needs its knowledge from the user here."""
    if Knowledge.REMAINING_TIME in policy.knowledge:
        unknown = sorted({task.job for task in file.tasks} - file.durations_ms.keys())
        if unknown:
            raise InputError.single(
                f"{file.source}: duration_h",
                f"policy {policy.name} has to know how long every job runs; not stated for "
                f"{len(unknown)} of them, the first being {unknown[0]!r}",
            )
    if Knowledge.PAIRWISE_PROFILE in policy.knowledge and measured is None:
        raise InputError.single(
            "--interference",
            f"policy {policy.name} has to know how workloads slow each other; give it a matrix",
        )


def _entries(measured: Interference) -> Iterator[Entry]:
    for workload, row in measured.matrix.items():
        for beside, throughput in row.items():
            yield Entry(Workload(workload), (Workload(beside),), throughput)


def _valuation_of(policy: SchedulingPolicy) -> Valuation:
    """Ablations value sets in their own way; everybody else is judged by TNRP."""
    return policy.valuation if isinstance(policy, EvaPolicy) else Valuation()
