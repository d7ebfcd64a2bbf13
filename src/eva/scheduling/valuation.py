"""What a set of tasks on one instance is worth: (throughput-normalized) reservation price.

One task at normalized throughput `tput` is worth

    RP(task) - (1 - tput) * sum of RP over its whole job

which for a single-task job is `tput * RP`: a task that slows its siblings costs what they lose
too. The same function serves packing, the keep test and the savings S_F and S_P; otherwise they
would contradict each other.

Worth is computed in double precision and rounded to *quanta* of 1/1024 micro-dollar before any
comparison, so that the order of a sum can never decide. (A binary quantum, because decimal prices
times decimal throughputs do land on decimal halves, and never on binary ones this small.) Equality
therefore means equality, and has stated rules: a set worth exactly its instance is kept, a task
that adds exactly nothing is not added, since it could only add interference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eva.model.colocation import Neighbours, ThroughputTable, neighbours, without
from eva.scheduling.task_classes import TaskClass

QUANTA_PER_MICRO = 1024

Members = Sequence[tuple[TaskClass, int]]  # classes with how many tasks of each


def quanta(micros: float) -> int:
    return round(micros * QUANTA_PER_MICRO)


@dataclass(frozen=True, slots=True)
class Valuation:
    """How sets are valued. The ablations of the paper are its switches.

    `interference` off values every set at its plain reservation price (Eva-RP); `multi_task` off
    forgets that siblings wait for each other (Eva-Single).
    """

    interference: bool = True
    multi_task: bool = True

    def task_micros(self, group: TaskClass, family: str, throughput: float) -> float:
        """Worth of one task of `group` on `family` at a normalized throughput, in micro-dollars."""
        alone = group.price.on(family)
        if not self.interference:
            return float(alone)
        return alone - (1.0 - throughput) * self.at_stake_micros(group, family)

    def at_stake_micros(self, group: TaskClass, family: str) -> int:
        """What a complete standstill of one task of `group` would cost: itself and its siblings."""
        return group.price.on(family) + (group.others_micros if self.multi_task else 0)

    def value(self, family: str, members: Members, table: ThroughputTable) -> int:
        """Worth of a set of tasks sharing one instance of `family`, in quanta."""
        crowd = crowd_of(members)
        return quanta(
            sum(
                count
                * self.task_micros(
                    group,
                    family,
                    table.throughput(group.spec.workload, without(crowd, group.spec.workload)),
                )
                for group, count in members
            )
        )


def crowd_of(members: Members) -> Neighbours:
    """The workloads of a set of tasks, as the table keys them."""
    return neighbours(group.spec.workload for group, count in members for _ in range(count))
