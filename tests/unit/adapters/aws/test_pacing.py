"""Pacing: how fast, who first, and how long after a refusal; on a clock that sleeping moves."""

from __future__ import annotations

import asyncio
import random

import pytest

from eva.adapters.aws.pacing import Pacer, Urgency
from tests.unit.adapters.aws.harness import Clock

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]


class Sleeper:
    """Sleeping moves the clock; somebody may come meanwhile."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.slept_ms: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept_ms.append(seconds * 1000)
        self.clock.advance(max(1, round(seconds * 1000)))
        await asyncio.sleep(0)


def made(calls_per_second: float = 10.0, burst: int = 3) -> tuple[Pacer, Clock, Sleeper]:
    clock = Clock()
    sleeper = Sleeper(clock)
    return Pacer(calls_per_second, burst, clock, random.Random(7), sleeper), clock, sleeper


async def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    pacer, clock, _ = made()
    began_ms, times = clock(), []
    for _ in range(6):
        await pacer.turn(Urgency.LOOK)
        times.append(clock() - began_ms)
    assert times == [0, 0, 0, 100, 200, 300]


async def test_terminations_go_before_launches_that_wait() -> None:
    pacer, _, _ = made(burst=1)
    order: list[Urgency] = []

    async def call(urgency: Urgency) -> None:
        await pacer.turn(urgency)
        order.append(urgency)

    await pacer.turn(Urgency.LOOK)
    await asyncio.gather(*map(call, (Urgency.LAUNCH, Urgency.REFRESH, Urgency.TERMINATE)))
    assert order == [Urgency.TERMINATE, Urgency.LAUNCH, Urgency.REFRESH]


async def test_refusals_double_the_wait_and_success_halves_it() -> None:
    pacer, clock, _ = made(calls_per_second=1_000, burst=1_000)
    waits = []
    for _ in range(4):
        before_ms = clock()
        pacer.refused()
        await pacer.turn(Urgency.LAUNCH)
        waits.append(clock() - before_ms)
    for wait_ms, penalty_ms in zip(waits, (1_000, 2_000, 4_000, 8_000), strict=True):
        assert penalty_ms / 2 <= wait_ms <= penalty_ms + 1
    for _ in range(4):
        pacer.accepted()
    before_ms = clock()
    pacer.refused()
    await pacer.turn(Urgency.LAUNCH)
    assert clock() - before_ms <= 1_001


async def test_waits_differ_between_masters() -> None:
    waits = set()
    for seed in range(8):
        clock = Clock()
        pacer = Pacer(1_000, 1_000, clock, random.Random(seed), Sleeper(clock))
        before_ms = clock()
        pacer.refused()
        await pacer.turn(Urgency.LAUNCH)
        waits.add(clock() - before_ms)
    assert len(waits) > 4


async def test_whoever_gives_up_waiting_does_not_hold_up_the_others() -> None:
    pacer, _, sleeper = made(burst=1)
    await pacer.turn(Urgency.LOOK)
    gave_up = asyncio.create_task(pacer.turn(Urgency.TERMINATE))
    await asyncio.sleep(0)
    gave_up.cancel()
    await pacer.turn(Urgency.LAUNCH)
    assert sum(sleeper.slept_ms) < 250
    await pacer.close()
