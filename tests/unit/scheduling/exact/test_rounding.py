"""Dives: what is packed never exceeds what is there, what is covered covers all of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from eva.scheduling.exact.lp import PoolLp, Sense
from eva.scheduling.exact.rounding import dive, whole_numbers


@pytest.mark.parametrize("sense", list(Sense))
@pytest.mark.parametrize("seed", range(40))
def test_every_state_accounts_for_its_copies(seed: int, sense: Sense) -> None:
    draw = default_rng(seed)
    classes = int(draw.integers(2, 6))
    sets = np.vstack([np.eye(classes, dtype=np.int64), draw.integers(0, 3, size=(30, classes))])
    sets = sets[sets.any(axis=1)]
    need = draw.integers(1, 8, size=classes)
    costs = sets.sum(axis=1) * draw.uniform(0.5, 1.5, size=len(sets))
    costs = costs if sense is Sense.COVER else -costs
    start = np.arange(classes, dtype=np.int64)
    states = list(
        dive(PoolLp(costs, sets.astype(float), need.astype(float), sense, start), costs, sets, need)
    )
    for state in states:
        used = state.copies @ sets
        assert (state.left == np.maximum(need - used, 0)).all()
        if sense is Sense.PACK:
            assert (used <= need).all()
    if sense is Sense.COVER:
        assert not states[-1].left.any()
    else:  # with singles in the pool that gain, nothing is left over
        assert (states[-1].left == 0).all()


def test_program_over_whole_numbers_finds_the_cheapest_cover() -> None:
    sets = np.array([[1, 0], [0, 1], [2, 1]])
    proof = whole_numbers(np.array([3.0, 3.0, 7.0]), sets, np.array([4, 2]), Sense.COVER, 5_000, 0)
    assert proof.copies is not None
    assert proof.copies.tolist() == [0, 0, 2]
    assert proof.bound == pytest.approx(14)
