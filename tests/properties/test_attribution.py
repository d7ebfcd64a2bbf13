"""What the paper promises of its attribution rules, against worlds whose truth is known.

A world draws a true throughput for every workload in every surrounding. Jobs of one to four tasks
are placed at random, again and again; each runs at the minimum over its tasks of the truth. The
table learns from what it is shown of this, and is then held against the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from eva.model.colocation import Entry, Neighbours, ThroughputTable, neighbours, without
from eva.model.ids import JobId, TaskId, Workload, task_id
from eva.scheduling.attribution import TaskObservation, attribute

WORKLOADS = tuple(Workload(name) for name in "abcd")
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)

Group = list[TaskObservation]
seeds = st.integers(0, 2**32)


class World:
    """A ground truth, and random placements in it."""

    def __init__(self, seed: int, *, most_tasks: int = 4) -> None:
        self.random = Random(seed)
        self._most_tasks = most_tasks
        self._truth: dict[tuple[Workload, Neighbours], float] = {}

    def truth(self, workload: Workload, beside: Neighbours) -> float:
        if not beside:
            return 1.0
        return self._truth.setdefault((workload, beside), self.random.choice(LEVELS))

    def drift(self) -> None:
        """From now on everything interferes differently."""
        self._truth.clear()

    def observe(self, jobs: int = 5) -> list[Group]:
        """What is seen of newly drawn jobs, newly placed on instances of up to four tasks."""
        placement: list[Group] = [[] for _ in range(jobs * 2)]
        for number in range(jobs):
            job, size = JobId(f"job{number}"), self.random.randint(1, self._most_tasks)
            for index in range(size):
                room = [group for group in placement if len(group) < 4]
                workload = self.random.choice(WORKLOADS)
                seen = TaskObservation(task_id(job, index), job, workload, None, size)
                self.random.choice(room).append(seen)
        return self.at_true_pace([group for group in placement if group])

    def at_true_pace(self, placement: Sequence[Group]) -> list[Group]:
        pace: dict[JobId, float] = {}
        for group in placement:
            crowd = neighbours(seen.workload for seen in group)
            for seen in group:
                mine = self.truth(seen.workload, without(crowd, seen.workload))
                pace[seen.job] = min(mine, pace.get(seen.job, 1.0))
        return [[replace(seen, throughput=pace[seen.job]) for seen in group] for group in placement]

    def partly(self, groups: list[Group]) -> list[Group]:
        """Some instances left out, some tasks silent."""
        shown = [group for group in groups if self.random.random() < 0.8]
        return [
            [
                replace(seen, throughput=None) if self.random.random() < 0.1 else seen
                for seen in group
            ]
            for group in shown
        ]


def learn(groups: list[Group], table: ThroughputTable) -> ThroughputTable:
    return table.record(attribute(groups, table))


def as_dict(table: ThroughputTable) -> dict[tuple[Workload, Neighbours], float]:
    return {(entry.workload, entry.beside): entry.throughput for entry in table}


@given(seed=seeds, partly=st.booleans())
def test_recorded_values_are_lower_bounds_and_are_only_raised(seed: int, *, partly: bool) -> None:
    world, table = World(seed), ThroughputTable()
    for _ in range(30):
        before, groups = as_dict(table), world.observe()
        table = learn(world.partly(groups) if partly else groups, table)
        after = as_dict(table)
        assert all(value <= world.truth(*key) for key, value in after.items())
        assert all(after[key] >= value for key, value in before.items())


@given(seed=seeds)
def test_single_task_jobs_alone_are_recorded_exactly(seed: int) -> None:
    world, table = World(seed, most_tasks=1), ThroughputTable()
    for _ in range(10):
        table = learn(world.observe(), table)
    assert len(table) > 0
    assert all(entry.throughput == world.truth(entry.workload, entry.beside) for entry in table)


@given(seed=seeds)
def test_every_job_wholly_in_sight_is_explained(seed: int) -> None:
    """No job runs slower than all that is recorded of its tasks, once the answer has settled."""
    world, table = World(seed), ThroughputTable()
    groups = world.observe()
    for _ in range(20):
        table = learn(groups, table)
    expected: dict[JobId, list[float]] = {}
    observed: dict[JobId, float] = {}
    for group in groups:
        crowd = neighbours(seen.workload for seen in group)
        for seen in group:
            beside = without(crowd, seen.workload)
            recorded = table.recorded(seen.workload, beside)
            expected.setdefault(seen.job, []).extend([] if recorded is None else [recorded])
            observed[seen.job] = seen.throughput or 0.0
    for job, values in expected.items():
        assert min(values, default=1.0) == observed[job]


@given(seed=seeds)
def test_repeating_an_observation_settles_and_then_changes_nothing(seed: int) -> None:
    world, table = World(seed), ThroughputTable()
    groups = world.observe(jobs=8)
    steps = 0
    while entries := attribute(groups, table):
        table = table.record(entries)
        steps += 1
        assert steps <= sum(map(len, groups)) * len(LEVELS), "each step raises or adds an entry"


@given(seed=seeds)
def test_one_multi_task_job_settles_at_once(seed: int) -> None:
    world = World(seed)
    table = ThroughputTable()
    for _ in range(5):
        table = learn(world.observe(), table)
    groups = world.observe(jobs=1)
    table = learn(groups, table)
    assert attribute(groups, table) == ()


@given(seed=seeds)
def test_order_is_irrelevant(seed: int) -> None:
    world = World(seed)
    groups = world.observe(jobs=8)
    shuffled = [world.random.sample(group, len(group)) for group in groups]
    world.random.shuffle(shuffled)
    assert attribute(shuffled, ThroughputTable()) == attribute(groups, ThroughputTable())


# --------------------------------------------------------- the rules as the paper words them


def paper_step(groups: list[Group], table: ThroughputTable) -> Entry | None:
    """One round of the three rules for the one multi-task job in `groups`, word by word."""
    surroundings: list[tuple[TaskId, Workload, Neighbours]] = []
    observed = 1.0
    for group in groups:
        crowd = neighbours(seen.workload for seen in group)
        for seen in group:
            if seen.job_tasks > 1 and seen.throughput is not None:
                observed = seen.throughput
                beside = without(crowd, seen.workload)
                if beside:
                    surroundings.append((seen.task, seen.workload, beside))
    recorded = [
        (value, -len(beside), task, workload, beside)
        for task, workload, beside in surroundings
        if (value := table.recorded(workload, beside)) is not None
    ]
    unrecorded = [
        (-len(beside), task, workload, beside)
        for task, workload, beside in surroundings
        if table.recorded(workload, beside) is None
    ]
    if any(value < observed for value, *_ in recorded):
        workload, beside = min(recorded)[3:]
    elif unrecorded and all(value > observed for value, *_ in recorded):
        workload, beside = min(unrecorded)[2:]
    else:
        return None
    return Entry(workload, beside, observed)


@given(seed=seeds)
def test_a_call_is_what_the_paper_does_over_the_rounds_that_follow(seed: int) -> None:
    world, table = World(seed), ThroughputTable()
    for _ in range(8):
        groups = world.observe(jobs=1)
        lone = [
            TaskObservation(TaskId(f"l{n}"), JobId(f"l{n}"), world.random.choice(WORKLOADS), 1.0)
            for n in range(len(groups))
        ]
        groups = world.at_true_pace(
            [[*group, one] for group, one in zip(groups, lone, strict=True)]
        )
        if groups[0][0].job_tasks == 1:
            continue
        expected = learn(groups, table)
        literal = table.record(
            entry for entry in attribute(groups, table) if _of_single_task_jobs(entry, groups)
        )
        while (entry := paper_step(groups, literal)) is not None:
            literal = literal.record([entry])
        assert as_dict(literal) == as_dict(expected)
        table = expected


def _of_single_task_jobs(entry: Entry, groups: list[Group]) -> bool:
    return any(
        seen.job_tasks == 1
        and seen.workload == entry.workload
        and without(neighbours(one.workload for one in group), seen.workload) == entry.beside
        for group in groups
        for seen in group
    )


# -------------------------------------------------- where the promise needs its assumptions


def test_it_needs_a_truth_that_does_not_change() -> None:
    """Some entry learned before everything changed is above the new truth."""
    world, table = World(7), ThroughputTable()
    for _ in range(30):
        table = learn(world.observe(), table)
    world.drift()
    assert any(entry.throughput > world.truth(entry.workload, entry.beside) for entry in table)


def test_and_a_contradicted_table_comes_down_again() -> None:
    """The price of mending itself is that values are then lowered, too."""
    world, table = World(7, most_tasks=1), ThroughputTable()
    placements = [world.observe() for _ in range(30)]
    for groups in placements:
        table = learn(groups, table)
    before = as_dict(table)
    world.drift()
    for groups in placements:
        table = learn(world.at_true_pace(groups), table)
    after = as_dict(table)
    assert any(after[key] < value for key, value in before.items())
    assert all(value == world.truth(*key) for key, value in after.items())


def test_it_needs_exact_observations() -> None:
    """One reading that is too fast stays in the table as more than the truth."""
    slow, fast = Workload("slow"), Workload("fast")
    noisy = [
        TaskObservation(TaskId("x.0"), JobId("x"), slow, 0.9),  # in truth 0.8
        TaskObservation(TaskId("y.0"), JobId("y"), fast, 1.0),
    ]
    table = learn([noisy], ThroughputTable())
    assert table.recorded(slow, (fast,)) == 0.9


def test_an_innocent_task_may_be_blamed_and_is_cleared_later() -> None:
    """Rule 1 looks at the most neighbours; the culprit had fewer. A lower bound all the same."""
    a, b, c = (Workload(name) for name in "abc")
    truth = {(a, (c, c)): 1.0, (b, (c,)): 0.6}
    groups = [
        [_part(0, a, 0.6), _lone("c0", c), _lone("c1", c)],
        [_part(1, b, 0.6), _lone("c2", c)],
    ]
    table = learn(groups, ThroughputTable())
    assert table.recorded(a, (c, c)) == 0.6
    assert table.recorded(b, (c,)) is None
    lone = [TaskObservation(TaskId("a.0"), JobId("a"), a, truth[a, (c, c)]), *groups[0][1:]]
    table = learn([lone], table)
    table = learn(groups, table)
    assert all(table.recorded(*key) == value for key, value in truth.items())


def test_an_explanation_lost_to_another_job_is_found_when_the_job_is_seen_again() -> None:
    """Which is why unchanged observations of multi-task jobs are worth repeating.

    Job x blamed a beside c; job y shows that this runs faster. Until x is seen again, nobody is
    to blame for its pace.
    """
    a, b, c = (Workload(name) for name in "abc")
    x = [[_part(0, a, 0.6, "x"), _lone("c0", c)], [_part(1, b, 0.6, "x"), _lone("c1", c)]]
    y = [[_part(0, a, 0.9, "y"), _lone("c2", c)], [_part(1, a, 0.9, "y"), _lone("c3", c)]]
    table = learn(x, ThroughputTable())
    assert (table.recorded(a, (c,)), table.recorded(b, (c,))) == (0.6, None)
    table = learn(y, table)
    assert (table.recorded(a, (c,)), table.recorded(b, (c,))) == (0.9, None)
    table = learn(x, table)
    assert (table.recorded(a, (c,)), table.recorded(b, (c,))) == (0.9, 0.6)


def _part(index: int, workload: Workload, pace: float, job: str = "j") -> TaskObservation:
    return TaskObservation(TaskId(f"{job}.{index}"), JobId(job), workload, pace, 2)


def _lone(name: str, workload: Workload) -> TaskObservation:
    return TaskObservation(TaskId(name), JobId(name), workload, 1.0)
