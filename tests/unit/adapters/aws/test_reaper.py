"""The reaper: what it decides over random histories, and what it does over HTTP."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eva.adapters.aws.names import Mark
from eva.adapters.aws.reaper import Cause, doomed
from eva.adapters.aws.sightings import Sighting
from eva.model.ids import InstanceId
from eva.ports.cloud import REAP_AFTER_MS, CloudState
from tests.support.cloud_proxy import THROTTLED, refusal
from tests.support.strays import launch_directly
from tests.unit.adapters.aws.harness import Bench, intent

NOW_MS = 1_800_000_000_000
OURS, THEIRS = "ours", "theirs"
intents = st.sampled_from([InstanceId(f"i-{n}") for n in range(4)])


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Sighting], dict[InstanceId, str | None]]:
    """Instances of any cluster, age and state; a journal that knows some of the intents."""
    seen = [
        Sighting(
            f"i-{number:04}",
            draw(st.sampled_from([OURS, THEIRS, "", "OURS", "ours "])),
            draw(st.one_of(intents, st.just(InstanceId("")))),
            "m5.large",
            "us-east-1a",
            draw(st.sampled_from(CloudState)),
            NOW_MS - draw(st.integers(-5_000, 3 * REAP_AFTER_MS)),
        )
        for number in range(draw(st.integers(0, 6)))
    ]
    refs = st.one_of(st.none(), st.sampled_from([each.ref for each in seen] or ["i-none"]))
    return seen, draw(st.dictionaries(intents, refs, max_size=4))


@given(histories())
def test_only_ours_and_only_the_unknown_and_only_the_old_are_doomed(
    history: tuple[list[Sighting], dict[InstanceId, str | None]],
) -> None:
    seen, known = history
    by_ref = {each.ref: each for each in seen}
    for end in doomed(seen, known, OURS, NOW_MS):
        each = by_ref[end.ref]
        assert each.cluster == OURS
        assert NOW_MS - each.launched_ms > REAP_AFTER_MS
        assert each.state is not CloudState.TERMINATED
        if end.cause is Cause.UNKNOWN:
            assert each.instance not in known
        else:
            assert known[each.instance] not in {None, each.ref}


@given(histories())
def test_no_instance_that_a_known_intent_may_need_is_doomed(
    history: tuple[list[Sighting], dict[InstanceId, str | None]],
) -> None:
    seen, known = history
    ended = {end.ref for end in doomed(seen, known, OURS, NOW_MS)}
    for each in seen:
        if each.instance in known and known[each.instance] in {None, each.ref}:
            assert each.ref not in ended


@given(histories())
def test_nothing_that_nobody_knows_lives_for_ever(
    history: tuple[list[Sighting], dict[InstanceId, str | None]],
) -> None:
    """Whatever is ours and unknown is doomed sooner or later, and again until it is over."""
    seen, _ = history
    later_ms = NOW_MS + 10 * REAP_AFTER_MS
    alive = {e.ref for e in seen if e.cluster == OURS and e.state is not CloudState.TERMINATED}
    assert {end.ref for end in doomed(seen, {}, OURS, later_ms)} == alive


@given(histories(), st.integers(0, 10 * REAP_AFTER_MS))
def test_knowing_more_never_dooms_more_than_doubles(
    history: tuple[list[Sighting], dict[InstanceId, str | None]], passed_ms: int
) -> None:
    seen, known = history
    now_ms = NOW_MS + passed_ms
    without = {end.ref for end in doomed(seen, {}, OURS, now_ms)}
    assert {end.ref for end in doomed(seen, known, OURS, now_ms)} <= without


def test_exactly_a_minute_is_not_old_enough() -> None:
    each = Sighting(
        "i-1", OURS, InstanceId("i-9"), "m5.large", "a", CloudState.RUNNING, NOW_MS - REAP_AFTER_MS
    )
    assert doomed([each], {}, OURS, NOW_MS) == []
    older = dataclasses.replace(each, launched_ms=each.launched_ms - 1)
    assert [end.ref for end in doomed([older], {}, OURS, NOW_MS)] == ["i-1"]


# Over HTTP


def journal(*names: str) -> Callable[[], Collection[InstanceId]]:
    return lambda: {InstanceId(name) for name in names}


def launch_long_ago(bench: Bench, cluster: str | None, name: str, journal: str = "") -> str:
    mark = None if cluster is None else Mark(cluster, journal)
    return launch_directly(bench.proxy, mark, name, bench.clock() - 2 * REAP_AFTER_MS)


@pytest.mark.anyio
async def test_only_what_is_ours_and_unknown_is_ended(bench: Bench) -> None:
    cloud = bench.open()
    kept = await cloud.launch(intent("i-1"))
    cluster = bench.settings.cluster
    unknown = launch_long_ago(bench, cluster, "i-77")
    double = launch_long_ago(bench, cluster, "i-1")
    others = [
        launch_long_ago(bench, "another", "i-77"),
        launch_long_ago(bench, None, ""),
    ]
    bench.clock.advance(2 * REAP_AFTER_MS)
    done = await cloud.reap(journal("i-1"))
    assert {(end.ref, end.reason) for end in done} == {
        (unknown, Cause.UNKNOWN.value),
        (double, Cause.DOUBLE.value),
    }
    assert {each.ref for each in bench.proxy.alive()} == {kept.ref, *others}
    assert list(await cloud.reap(journal("i-1"))) == []


@pytest.mark.anyio
async def test_the_journal_is_read_after_the_cloud(bench: Bench) -> None:
    """A launch that is journaled while EC2 is being listed is known by the time it matters."""
    cloud = bench.open()
    await cloud.launch(intent("i-1"))
    bench.clock.advance(2 * REAP_AFTER_MS)

    def known() -> Collection[InstanceId]:
        assert bench.proxy.calls[-1] == "DescribeInstances"
        return {InstanceId("i-1")}

    assert list(await cloud.reap(known)) == []


@pytest.mark.anyio
async def test_ends_are_repeated_until_ec2_says_terminated(bench: Bench) -> None:
    cloud = bench.open()
    bench.proxy.script.terminated_after_ms = 60_000
    ref = launch_long_ago(bench, bench.settings.cluster, "i-77")
    bench.proxy.script.next["TerminateInstances"].extend(
        [refusal("InternalError", 500), THROTTLED, None]
    )
    failed = await cloud.reap(journal())
    assert [end.ref for end in failed] == [ref]
    assert "InternalError" in failed[0].failed
    for _ in range(2):
        done = await cloud.reap(journal())
        assert [(end.ref, end.failed) for end in done] == [(ref, "")]
    bench.clock.advance(60_000)
    assert list(await cloud.reap(journal())) == []


@pytest.mark.anyio
async def test_a_young_launch_that_the_journal_forgot_is_left_alone_at_first(bench: Bench) -> None:
    cloud = bench.open()
    await cloud.launch(intent("i-1"))
    bench.clock.advance(REAP_AFTER_MS)
    assert list(await cloud.reap(journal())) == []
    bench.clock.advance(1)
    assert len(await cloud.reap(journal())) == 1


@pytest.mark.anyio
async def test_a_lost_journal_leaves_nobodys_instances_and_takes_none_over(bench: Bench) -> None:
    """The next journal numbers from 1 again; what it asks for is not what is there."""
    before = await bench.open(journal="demo-1").launch(intent("i-1"))
    cloud = bench.open(journal="demo-2")
    assert list(await cloud.list()) == []
    launched = await cloud.launch(intent("i-1"))
    assert launched.ref != before.ref
    bench.clock.advance(REAP_AFTER_MS + 1)
    (reaped,) = await cloud.reap(journal("i-1"))
    assert (reaped.ref, reaped.instance) == (before.ref, "")
    assert [each.ref for each in bench.proxy.alive()] == [launched.ref]
    assert list(await cloud.reap(journal("i-1"))) == []
