"""Which task gets which CPUs and GPUs of this instance: disjoint, and accounted in full.

An instance of the local cloud may promise more than this machine has. Then what was promised is
what is accounted, and what there is, is what is enforced: without enough CPUs to go round nobody
is pinned, because pinning some would give the others less than their share. The same holds for
fractions of a CPU, which are rounded up to whole ones while there are some, and not pinned after.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eva.model.errors import CapacityError
from eva.model.resources import NOTHING, Resources, total
from eva.model.units import MILLIS_PER_CPU


@dataclass(frozen=True, slots=True)
class Devices:
    """What one task has."""

    amount: Resources = NOTHING
    cpus: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inventory:
    """What this instance has: `cpus` are numbers of this machine, none for no pinning at all."""

    capacity: Resources
    cpus: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()

    @property
    def pins(self) -> bool:
        return len(self.cpus) * MILLIS_PER_CPU >= self.capacity.cpu_millis

    def take(self, demand: Resources, taken: Iterable[Devices]) -> Devices:
        """Room for one more task, lowest numbers first; CapacityError if there is none."""
        taken = list(taken)
        free = self.capacity.minus(total(devices.amount for devices in taken))
        used_gpus = {gpu for devices in taken for gpu in devices.gpus}
        gpus = [gpu for gpu in self.gpus if gpu not in used_gpus]
        if not demand.fits_in(free) or demand.gpus > len(gpus):
            raise CapacityError(
                f"{demand} does not fit: of {self.capacity} only {free} is free here, and "
                f"{len(gpus)} GPUs are known. Wait for a task to end, or ask for less"
            )
        return Devices(demand, self._cpus(demand, taken), tuple(gpus[: demand.gpus]))

    def _cpus(self, demand: Resources, taken: list[Devices]) -> tuple[int, ...]:
        if not self.pins:
            return ()
        used = {cpu for devices in taken for cpu in devices.cpus}
        free = [cpu for cpu in self.cpus if cpu not in used]
        wanted = -(-demand.cpu_millis // MILLIS_PER_CPU)
        return tuple(free[:wanted]) if wanted <= len(free) else ()
