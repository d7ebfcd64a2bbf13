"""The search for sets, against going through all of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from eva.scheduling.exact.search import Host, Slowdown, room_rates, search

SEEDS = range(25)


def _draw(seed: int) -> tuple[Host, np.ndarray, Generator]:
    draw = default_rng(seed)
    classes = int(draw.integers(1, 5))
    demands = draw.integers(0, 6, size=(classes, 3))
    demands[:, 1] = np.maximum(demands[:, 1], 1)
    host = Host(draw.integers(3, 13, size=3), demands, draw.integers(1, 5, size=classes))
    return host, draw.integers(1, 20, size=classes).astype(float), draw


def _all_sets(host: Host) -> list[tuple[int, ...]]:
    counts = product(*(range(int(limit) + 1) for limit in host.limits))
    return [c for c in counts if (np.array(c) @ host.demands <= host.room).all()]


def _is_maximal(host: Host, chosen: tuple[int, ...]) -> bool:
    room = host.room - np.array(chosen) @ host.demands
    return not any(
        count < limit and (demand <= room).all()
        for count, limit, demand in zip(chosen, host.limits, host.demands, strict=True)
    )


def _worth(chosen: tuple[int, ...], worth: np.ndarray, pairs: np.ndarray) -> float:
    total = 0.0
    for i, count in enumerate(chosen):
        if count:
            beside = [n - (j == i) for j, n in enumerate(chosen)]
            total += count * worth[i] * float(np.prod(pairs[i] ** np.array(beside)))
    return total


@pytest.mark.parametrize("seed", SEEDS)
def test_lists_exactly_the_maximal_sets_worth_the_floor(seed: int) -> None:
    host, worth, _ = _draw(seed)
    floor = float(worth.max() * 2)
    found = search(host, worth, floor, 100_000, room_rates(host, worth))
    expected = {
        chosen
        for chosen in _all_sets(host)
        if _is_maximal(host, chosen) and np.array(chosen) @ worth >= floor
    }
    assert found.complete
    assert {tuple(line) for line in found.sets.tolist() if any(line)} == expected - {
        (0,) * len(worth)
    }


@pytest.mark.parametrize("most", [1, 3, 10, 100_000])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_set_is_worth_more_than_the_ceiling(seed: int, most: int) -> None:
    host, worth, _ = _draw(seed)
    found = search(host, worth, 1.0, most, room_rates(host, worth))
    best = max(float(np.array(chosen) @ worth) for chosen in _all_sets(host))
    assert found.ceiling >= best * (1 - 1e-9)
    if found.complete:
        assert found.ceiling == pytest.approx(max(best, 1.0))


@pytest.mark.parametrize("most", [2, 10, 100_000])
@pytest.mark.parametrize("seed", SEEDS)
def test_ceiling_holds_where_neighbours_slow_each_other(seed: int, most: int) -> None:
    host, worth, draw = _draw(seed)
    pairs = draw.uniform(0.5, 1.0, size=(len(worth), len(worth)))
    slowdown = Slowdown(np.arange(len(worth)), np.log(pairs))
    found = search(host, worth, 1.0, most, room_rates(host, worth), slowdown)
    best = max(_worth(chosen, worth, pairs) for chosen in _all_sets(host))
    assert found.ceiling >= best * (1 - 1e-9)
    if found.complete:
        assert found.worth.max(initial=1.0) == pytest.approx(max(best, 1.0))
    for line, value in zip(found.sets.tolist(), found.worth, strict=True):
        assert value == pytest.approx(_worth(tuple(line), worth, pairs))
