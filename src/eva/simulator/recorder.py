"""Time-weighted measures, exact and without ticking.

Every change to an instance or to a pace is announced with `touch` before it happens, so that the
time since the last change can be accounted at the state that held throughout. Where the money went
is counted in milliseconds of the instance's price:

setup          acquired, no task here yet: its worker is starting, or tasks are on their way
draining       all tasks have left: waiting for the next round, and then for being terminated
fragments      the part of an occupied instance that no task uses
overhead       the part of tasks that start, initialise, wait for siblings, or are being stopped
interference   the part of progressing tasks that is lost to neighbours
work           the rest

A task's part is the largest share that it takes of any resource, scaled down where parts add up to
more than the whole.
"""

from __future__ import annotations

from eva.simulator.world import Phase, WorldInstance

CATEGORIES = ("work", "interference", "overhead", "fragments", "setup", "draining")


def touch(instance: WorldInstance, now_ms: int) -> None:
    """Account the time since the last change, while the state still is what it was."""
    elapsed = now_ms - instance.accounted_ms
    if elapsed <= 0:
        return
    instance.accounted_ms = now_ms
    if instance.acquired_ms is None:
        return
    spent = instance.spent_ms
    if not instance.copies:
        idle = "draining" if instance.hosted else "setup"
        spent[idle] = spent.get(idle, 0.0) + elapsed
        return
    _account_copies(instance, elapsed)


def _account_copies(instance: WorldInstance, elapsed: int) -> None:
    work = interference = overhead = whole = 0.0
    for copy in instance.copies.values():
        share = copy.share
        whole += share
        if copy.phase is Phase.RUNNING:
            instance.running_ms += elapsed
            instance.speed_ms += elapsed * copy.speed
            if copy.job.progressing:
                work += share * copy.job.rate
                interference += share * (1.0 - copy.job.rate)
                continue
        overhead += share
    instance.task_ms += elapsed * len(instance.copies)
    used_ms = instance.used_ms
    for index, amount in enumerate(instance.used):
        used_ms[index] += amount * elapsed
    scale = elapsed / max(1.0, whole)
    spent = instance.spent_ms
    for category, part in (
        ("work", work),
        ("interference", interference),
        ("overhead", overhead),
    ):
        spent[category] = spent.get(category, 0.0) + part * scale
    spent["fragments"] = spent.get("fragments", 0.0) + max(0.0, 1.0 - whole) * elapsed
