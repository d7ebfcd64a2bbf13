"""Changes of a plan told with their reasons, on the paper's worked example."""

from __future__ import annotations

from dataclasses import replace

from eva.master.changes import changes
from eva.model.ids import InstanceId, TaskId
from eva.model.plan import ClusterPlan, PlannedInstance
from eva.model.snapshot import ClusterSnapshot, InstanceView
from eva.scheduling.policies import policy
from tests.support import paper_example
from tests.support.paper_example import CATALOG


def on(name: str, kind: str, *tasks: str) -> InstanceView:
    found = CATALOG.get(kind)
    assert found is not None
    return InstanceView(InstanceId(name), found, tuple(map(TaskId, tasks)))


def cluster(*present: InstanceView, without: frozenset[str] = frozenset()) -> ClusterSnapshot:
    """The example's tasks, each where an instance says that it is."""
    places = {task: view.id for view in present for task in view.tasks}
    tasks = (replace(each, instance=places.get(each.id)) for each in paper_example.TASKS)
    return replace(
        paper_example.snapshot(),
        tasks=tuple(each for each in tasks if each.id not in without),
        instances=present,
    )


def told(snapshot: ClusterSnapshot) -> list[str]:
    return changes(policy("eva").plan(snapshot), snapshot).reasons()


def test_new_instances_say_what_their_tasks_would_cost_apart() -> None:
    packed, *alone = told(cluster())
    assert packed == (
        "a new it1 at $12.0000/h for t1, t2: apart $15.0000/h, "
        "$14.2500/h at the speeds expected together"
    )
    assert alone == [
        "a new it3 at $0.8000/h for t3: the cheapest type that holds it",
        "a new it4 at $0.4000/h for t4: the cheapest type that holds it",
    ]


def test_an_instance_that_lost_its_main_task_says_what_the_others_are_worth() -> None:
    left = cluster(on("i-1", "it1", "t2", "t4"), without=frozenset({"t1", "t3"}))
    given_up, *made = told(left)
    assert given_up.startswith("i-1, a it1 at $12.0000/h, is given up: t2, t4 are worth only $3.")
    assert all(line.startswith("a new it") for line in made)


def test_an_empty_instance_is_said_to_be_empty() -> None:
    done = cluster(on("i-1", "it4"), without=frozenset({"t1", "t2", "t3", "t4"}))
    assert told(done) == ["i-1, a it4 at $0.4000/h, is given up: it has no task left"]


def test_what_stays_is_not_told_and_needs_nothing_remembered() -> None:
    snapshot = cluster(on("i-1", "it1", "t1", "t2", "t4"), on("i-2", "it3", "t3"))
    kept = [PlannedInstance(view.type, view.tasks, view.id) for view in snapshot.instances]
    unchanged = changes(ClusterPlan(tuple(kept)), snapshot)
    assert unchanged.reasons() == []
    assert unchanged.snapshot.tasks == ()


def test_a_present_instance_that_gets_a_task_is_told_with_all_of_them() -> None:
    snapshot = cluster(on("i-1", "it1", "t1"), without=frozenset({"t3", "t4"}))
    filled = PlannedInstance(
        snapshot.instances[0].type, (TaskId("t1"), TaskId("t2")), InstanceId("i-1")
    )
    (line,) = changes(ClusterPlan((filled,)), snapshot).reasons()
    assert line.startswith("i-1, a it1 at $12.0000/h, for t1, t2: apart $15.0000/h")
