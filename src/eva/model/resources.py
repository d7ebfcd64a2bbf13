"""What instances have and tasks need: GPUs, CPU and memory, as integers.

A demand may differ by instance family, because a faster core does the same work with fewer of
them: the paper's GCN task needs 12 vCPUs on p3 but only 6 on c7i and r7i.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from eva.model.spot import is_spot, on_demand
from eva.model.units import MIB_PER_GB, MILLIS_PER_CPU


class Resources(NamedTuple):
    """An amount of every resource. Whole GPUs: a GPU is never shared between tasks."""

    gpus: int
    cpu_millis: int
    memory_mib: int

    def fits_in(self, room: Resources) -> bool:
        return (
            self.gpus <= room.gpus
            and self.cpu_millis <= room.cpu_millis
            and self.memory_mib <= room.memory_mib
        )

    def plus(self, other: Resources) -> Resources:
        return Resources(
            self.gpus + other.gpus,
            self.cpu_millis + other.cpu_millis,
            self.memory_mib + other.memory_mib,
        )

    def minus(self, other: Resources) -> Resources:
        return Resources(
            self.gpus - other.gpus,
            self.cpu_millis - other.cpu_millis,
            self.memory_mib - other.memory_mib,
        )

    def __str__(self) -> str:
        cpus = self.cpu_millis / MILLIS_PER_CPU
        return f"{self.gpus} GPU, {cpus:g} CPU, {self.memory_mib / MIB_PER_GB:g} GB"


NOTHING = Resources(0, 0, 0)


def total(amounts: Iterable[Resources]) -> Resources:
    """The sum of amounts, with one tuple built at the end."""
    gpus = cpu_millis = memory_mib = 0
    for amount in amounts:
        gpus += amount.gpus
        cpu_millis += amount.cpu_millis
        memory_mib += amount.memory_mib
    return Resources(gpus, cpu_millis, memory_mib)


@dataclass(frozen=True)
class Demand:
    """What one task needs: `default` on every family that `per_family` does not name.

    With `default` None the task runs on the named families only. `per_family` is kept sorted, so
    that equal demands compare and hash equal. Families on spot are never named: with `spot` the
    task may run there too, and needs what it needs on demand.
    """

    default: Resources | None
    per_family: tuple[tuple[str, Resources], ...] = ()
    spot: bool = False

    def __post_init__(self) -> None:
        if self.default is None and not self.per_family:
            raise ValueError("a demand needs a default or at least one family")
        object.__setattr__(self, "per_family", tuple(sorted(self.per_family)))

    @classmethod
    def of(cls, gpus: int, cpus: float, memory_gb: float) -> Demand:
        """The short way to write a demand that is the same on every family."""
        return cls(
            Resources(gpus, round(cpus * MILLIS_PER_CPU), round(memory_gb * MIB_PER_GB)),
        )

    @cached_property
    def _by_family(self) -> dict[str, Resources | None]:
        """What is named, and what was found: it is asked for in every round, for every family."""
        return dict(self.per_family)

    @cached_property
    def _hash(self) -> int:
        return hash((self.default, self.per_family, self.spot))

    def __hash__(self) -> int:
        return self._hash

    def on(self, family: str) -> Resources | None:
        """The demand on this family, or None where the task cannot run at all."""
        try:
            return self._by_family[family]
        except KeyError:
            found = self._by_family[family] = self._unnamed(family)
            return found

    def _unnamed(self, family: str) -> Resources | None:
        if is_spot(family):
            return self.on(on_demand(family)) if self.spot else None
        return self.default
