"""How many of everything, and what is submitted.

Tasks live for a random time whose mean is `tasks / rate`: then as many end as are submitted, and
`tasks` of them run at any time, however long it takes until they do.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import cached_property

PACE = 10.0  # steps per second of every task
_WORKLOADS = 8
_CPUS_EACH, _GB_EACH = 1, 4
# A big instance is worth its price when it hosts most of what fits on it.
_BIG_USD_PER_TASK, _SMALL_USD = 0.05, 0.10


@dataclass(frozen=True)
class Scenario:
    """`rate` is in submissions per second, and `seconds` for how long they are measured."""

    workers: int = 1_000
    tasks: int = 10_000
    rate: float = 50.0
    seconds: float = 60.0
    round_s: float = 10.0
    heartbeat_s: float = 5.0
    boot_s: float = 10.0  # instances come up at random within so long
    seed: int = 0

    @property
    def per_worker(self) -> int:
        return max(1, -(-self.tasks // self.workers))

    @property
    def life_s(self) -> float:
        return self.tasks / self.rate

    def catalog(self) -> str:
        """One instance for as many tasks as a worker is to host, and one for a single task."""
        big = self.per_worker
        return (
            "instance_type,family,gpus,cpus,memory_gb,usd_per_hour\n"
            f"big,crowd,0,{big * _CPUS_EACH},{big * _GB_EACH},{big * _BIG_USD_PER_TASK:.3f}\n"
            f"small,crowd,0,{_CPUS_EACH},{_GB_EACH},{_SMALL_USD:.3f}\n"
        )

    @cached_property
    def _draw(self) -> random.Random:
        return random.Random(self.seed)

    def job_file(self) -> str:
        """The next job; YAML, of which JSON is a part."""
        workload = self._draw.randrange(_WORKLOADS)
        steps = max(1, round(PACE * self._draw.expovariate(1 / self.life_s)))
        return json.dumps(
            {
                "name": f"w{workload}",
                "workload": f"w{workload}",
                "run": ["pretend", str(steps)],
                "resources": {"cpus": _CPUS_EACH, "memory": f"{_GB_EACH}GB"},
                "throughput": PACE,
                "progress": {"window": "1m"},
                "checkpoint": {"grace": "30s"},
            }
        )
