"""The books that `jobs/stepping.py` keeps, read and judged: what was done, by which copy, in order.

A line is `EPOCH after STEP` where a copy opened and `EPOCH step STEP` for each step it made.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

PROGRAM = Path(__file__).parent / "jobs/stepping.py"
JOB = """\
name: {name}
num_nodes: {nodes}
run: exec {python} {program} {steps} {pace:g} {save_every}
resources: {{gpus: {gpus}, cpus: 4, memory: 20GB}}
throughput: {pace:g}
progress: {{window: 5s}}
"""


def stepping_job(
    name: str, steps: int, *, gpus: int = 1, nodes: int = 1, pace: float = 20.0
) -> str:
    """The job file. It saves on its own twice a second."""
    return JOB.format(
        name=name,
        nodes=nodes,
        python=sys.executable,
        program=PROGRAM,
        steps=steps,
        pace=pace,
        save_every=round(pace / 2),
        gpus=gpus,
    )


@dataclass
class Copy:
    """One copy of the task: its epoch, where it went on, and the steps that it made."""

    epoch: int
    after: int
    steps: list[int] = field(default_factory=list)

    @property
    def last(self) -> int:
        return self.steps[-1] if self.steps else self.after


def read_book(text: str) -> list[Copy]:
    """The copies in the order of their opening. A line of a copy that is over is an error."""
    copies: list[Copy] = []
    for line in text.splitlines():
        epoch, what, step = line.split()
        if what == "after":
            copies.append(Copy(int(epoch), int(step)))
        else:
            assert int(epoch) == copies[-1].epoch, f"two copies at once: {line!r} in\n{text}"
            copies[-1].steps.append(int(step))
    return copies


def check_book(text: str, total: int, *, machines_lost: bool = False) -> None:
    """Finished exactly once, with no step lost or done twice.

    Where a machine was lost, its copy's steps since its last checkpoint are gone with it: they are
    done again by the next copy, and by no other.
    """
    copies = read_book(text)
    assert copies, "it never ran"
    assert copies[0].after == 0
    assert copies[-1].last == total, f"it is not finished:\n{text}"
    for copy in copies:
        assert copy.steps == list(range(copy.after + 1, copy.last + 1)), (copy, text)
    for before, after in pairwise(copies):
        assert before.epoch < after.epoch, f"one epoch began twice:\n{text}"
        if machines_lost:
            assert after.after <= before.last, f"steps were left out:\n{text}"
        else:
            assert after.after == before.last, f"steps were lost or done twice:\n{text}"
