from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eva.model.colocation import Entry, ThroughputTable, neighbours, without
from eva.model.ids import Workload

A, B, C = Workload("a"), Workload("b"), Workload("c")
names = st.sampled_from([A, B, C])
entries = st.lists(
    st.builds(
        Entry,
        names,
        st.lists(names, max_size=3).map(neighbours),
        st.floats(0.05, 1.5),
    ),
    max_size=12,
)


def test_alone_is_one_even_if_somebody_recorded_otherwise() -> None:
    table = ThroughputTable().record([Entry(A, (), 0.4)])
    assert table.throughput(A, ()) == 1.0
    assert len(table) == 0


def test_recorded_sets_come_before_pairs_and_pairs_before_the_default() -> None:
    table = ThroughputTable(default=0.9).record([Entry(A, (B,), 0.8)])
    assert table.throughput(A, (B,)) == 0.8
    assert table.throughput(A, (C,)) == 0.9
    assert table.throughput(A, (B, C)) == pytest.approx(0.8 * 0.9)
    assert table.record([Entry(A, (B, C), 0.75)]).throughput(A, (B, C)) == 0.75


def test_neighbours_are_a_multiset() -> None:
    table = ThroughputTable().record([Entry(A, (B,), 0.5)])
    assert table.throughput(A, (B, B)) == 0.25
    assert neighbours([C, A, C]) == (A, C, C)
    assert without((A, C, C), C) == (A, C)


def test_throughput_counts_as_one_at_most() -> None:
    assert ThroughputTable().record([Entry(A, (B,), 1.3)]).throughput(A, (B,)) == 1.0


@pytest.mark.parametrize("throughput", [0.0, -0.1, math.nan, math.inf])
def test_what_is_no_throughput_is_refused(throughput: float) -> None:
    with pytest.raises(ValueError, match="throughput of a"):
        ThroughputTable().record([Entry(A, (B,), throughput)])


@given(entries, entries)
def test_recording_leaves_the_older_table_alone(first: list[Entry], second: list[Entry]) -> None:
    table = ThroughputTable().record(first)
    before = list(table)
    table.record(second)
    assert list(table) == before


@given(entries)
def test_a_table_rebuilt_from_its_entries_answers_alike(recorded: list[Entry]) -> None:
    table = ThroughputTable().record(recorded)
    rebuilt = ThroughputTable().record(reversed(list(table)))
    assert list(rebuilt) == list(table)
    assert len(rebuilt) == len(table)
    for group in {(B,), (A, C), (B, B, C)}:
        assert rebuilt.throughput(A, group) == table.throughput(A, group)
        assert rebuilt.extensions(group) == table.extensions(group)


def test_extensions_name_who_completes_a_recorded_set() -> None:
    table = ThroughputTable().record([Entry(A, (B, C), 0.7)])
    assert table.extensions((B, C)) == {A}
    assert table.extensions((A, C)) == {B}
    assert table.extensions((A,)) == frozenset()


def test_another_default_keeps_what_is_recorded() -> None:
    table = ThroughputTable().record([Entry(A, (B,), 0.8)]).with_default(0.5)
    assert (table.throughput(A, (B,)), table.throughput(A, (C,))) == (0.8, 0.5)
