"""The state machine, told stories; and then thousands of random ones."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

from eva.model.errors import CapacityError, InvariantError
from eva.model.ids import JobId, TaskId
from eva.model.resources import Resources
from eva.ports.runtime import Argv, ExitKind, TaskExit
from eva.ports.storage import Checkpoint, Placement
from eva.ports.workers import (
    Checkpointed,
    CheckpointFailed,
    CheckpointOrder,
    CheckpointPolicy,
    CopyState,
    Exited,
    Report,
    SpotNoticed,
    Started,
    StartFailed,
    StartOrder,
    StopOrder,
    Stopped,
    TaskRun,
)
from eva.worker import stimuli as st
from eva.worker.devices import Devices, Inventory
from eva.worker.lifecycle import TABLE, TOLD_AS, Phase, Step
from eva.worker.machine import (
    LISTEN_PATIENCE_MS,
    SHORTEST_GRACE_MS,
    LocalCopy,
    Machine,
    Memory,
)
from eva.worker.notebook import Notebook
from eva.worker.stimuli import Instruction, Ref, Stimulus

JOB, TASK = JobId("j"), TaskId("j.0")
REF = Ref(TASK, 1)
INVENTORY = Inventory(Resources(2, 4_000, 8_192), (0, 1, 2, 3), ("GPU-a", "GPU-b"))
FINISHED = TaskExit(ExitKind.EXITED, 0)
LEFT = TaskExit(ExitKind.EXITED, 85)
CRASHED = TaskExit(ExitKind.EXITED, 3)
TERMINATED = TaskExit(ExitKind.SIGNALLED, signal=15)
SAVED = Checkpoint(Placement(JOB, TASK, 1), "0000000001/7", 7, 0, 1)
GRACE_MS = 60_000
SMALL = Resources(1, 1_000, 1_024)


def order(
    epoch: int = 1,
    policy: CheckpointPolicy | None = None,
    demand: Resources = SMALL,
    task: TaskId = TASK,
) -> StartOrder:
    checkpoint = policy or CheckpointPolicy(GRACE_MS)
    return StartOrder(JOB, task, epoch, TaskRun(Argv(("x",)), demand, checkpoint=checkpoint))


class Story:
    """A machine, its clock, and all that it said."""

    def __init__(self) -> None:
        self.machine = Machine(Memory(), INVENTORY, 0)
        self.now_ms = 0

    def tell(self, *stimuli: Stimulus) -> list[Instruction]:
        """The instructions that the last of these brought."""
        out: list[Instruction] = []
        for stimulus in stimuli:
            out = self.machine.handle(stimulus, self.now_ms)
        return out

    def reports(self, *stimuli: Stimulus) -> list[Report]:
        return [i.report for i in self.tell(*stimuli) if isinstance(i, st.Tell)]

    def running(self, policy: CheckpointPolicy | None = None, *, listens: bool = True) -> Story:
        self.tell(order(policy=policy), st.Launched(REF))
        if listens:
            self.tell(st.Listens(REF))
        return self

    def after(self, passed_ms: int) -> Story:
        self.now_ms += passed_ms
        return self


def kinds(instructions: list[Instruction]) -> list[type]:
    return [type(each) for each in instructions if not isinstance(each, st.Keep | st.KeepFloor)]


# ---------------------------------------------------------------------------------------- starts
def test_a_start_takes_devices_and_is_reported_when_it_runs() -> None:
    story = Story()
    (launch,) = [i for i in story.tell(order()) if isinstance(i, st.Launch)]
    assert launch.devices == Devices(Resources(1, 1_000, 1_024), (0,), ("GPU-a",))
    assert story.after(250).reports(st.Launched(REF)) == [Started(TASK, 1, 250)]
    assert story.tell(order()) == []  # ordered twice


def test_a_start_that_fails_is_settled_before_it_is_reported() -> None:
    story = Story()
    assert kinds(story.tell(order(), st.LaunchFailed(REF, "no image", infrastructure=False))) == [
        st.Settle
    ]
    assert story.reports(st.Settled(REF)) == [StartFailed(TASK, 1, "no image", False)]


def test_devices_are_disjoint_and_come_back_with_the_proof_of_stop() -> None:
    story = Story()
    a, b, c = (TaskId(f"j.{index}") for index in range(3))
    story.tell(order(task=a), order(task=b))
    taken = [copy.devices for copy in story.machine.copies.values()]
    assert not set(taken[0].cpus) & set(taken[1].cpus)
    assert {gpu for devices in taken for gpu in devices.gpus} == {"GPU-a", "GPU-b"}
    (refused,) = story.reports(order(task=c))
    assert isinstance(refused, StartFailed)
    assert refused.infrastructure
    story.tell(st.Launched(Ref(a, 1)), st.Ended(Ref(a, 1), FINISHED))
    (launch,) = [i for i in story.tell(order(task=c, epoch=2)) if isinstance(i, st.Launch)]
    assert launch.devices.gpus == ("GPU-a",)


def test_an_older_epoch_and_a_second_copy_are_refused() -> None:
    story = Story().running()
    (stale,) = story.reports(order(epoch=0))
    (second,) = story.reports(order(epoch=2))
    assert isinstance(stale, StartFailed)
    assert "stale" in stale.reason
    assert isinstance(second, StartFailed)
    assert "not ended" in second.reason


def test_a_copy_that_was_called_off_before_it_came_never_starts() -> None:
    story = Story()
    assert story.reports(StopOrder(TASK, 4)) == [Stopped(TASK, 4, "no such copy here")]
    (refused,) = story.reports(order(epoch=4))
    assert isinstance(refused, StartFailed)


def test_stopping_a_launch_calls_it_off_and_stops_what_slipped_through() -> None:
    story = Story()
    assert kinds(story.tell(order(), StopOrder(TASK, 1))) == [st.CallOffLaunch]
    assert story.tell(StopOrder(TASK, 1)) == []
    assert kinds(story.tell(st.Launched(REF))) == [st.Stop]
    assert kinds(story.tell(st.Ended(REF, TERMINATED))) == [st.Settle]
    (stopped,) = story.reports(st.Settled(REF))
    assert isinstance(stopped, Stopped)


# ------------------------------------------------------------------------------------------ ends
@pytest.mark.parametrize(
    ("end", "report"),
    [
        (FINISHED, Exited(TASK, 1, 0, steps=9)),
        (CRASHED, Exited(TASK, 1, 3, steps=9)),
        (TERMINATED, Exited(TASK, 1, 143, ExitKind.SIGNALLED, steps=9)),
        (TaskExit(ExitKind.OOM_KILLED), Exited(TASK, 1, 137, ExitKind.OOM_KILLED, steps=9)),
        (TaskExit(ExitKind.LOST), Stopped(TASK, 1, "ended unseen")),
        (
            TaskExit(ExitKind.NEVER_STARTED, detail="no such file"),
            StartFailed(TASK, 1, "never started: no such file", False),
        ),
    ],
)
def test_an_end_nobody_asked_for(end: TaskExit, report: Report) -> None:
    story = Story().running()
    assert kinds(story.tell(st.Ended(REF, end, 9))) == [st.Settle]
    assert story.reports(st.Settled(REF)) == [report]
    assert story.tell(st.Ended(REF, CRASHED)) == []


def test_a_stopped_task_that_finished_after_all_has_finished() -> None:
    story = Story().running()
    assert kinds(story.tell(StopOrder(TASK, 1))) == [st.Stop]
    assert isinstance(story.reports(st.Ended(REF, FINISHED), st.Settled(REF))[0], Exited)


def test_what_is_acknowledged_is_forgotten_and_not_before() -> None:
    story = Story().running()
    story.tell(st.Ended(REF, FINISHED), st.Settled(REF))
    assert kinds(story.tell(st.Acknowledged(1))) == [st.ForgetReports]
    assert list(story.machine.memory.reports) == [2]
    assert kinds(story.tell(st.Acknowledged(2))) == [st.ForgetReports, st.Forget]
    assert story.machine.copies == {}


# ----------------------------------------------------------------------------------- checkpoints
def test_a_task_that_listens_is_asked_and_leaves() -> None:
    story = Story().running()
    asked = story.tell(CheckpointOrder(TASK, 1, 1))
    assert st.AskCheckpoint(REF, 1, GRACE_MS) in asked
    assert story.tell(CheckpointOrder(TASK, 1, 1)) == []
    story.tell(st.Answered(REF, "7"))
    settle = story.tell(st.Ended(REF, LEFT))[-1]
    assert settle == st.Settle(REF, publish=True, name="7")
    assert story.after(500).reports(st.Settled(REF, SAVED)) == [
        Checkpointed(TASK, 1, 1, SAVED.key, 7, 500)
    ]


def test_a_task_that_answers_and_stays_is_stopped() -> None:
    story = Story().running()
    story.tell(CheckpointOrder(TASK, 1, 1), st.Answered(REF, "7"))
    assert kinds(story.after(9_999).tell(st.Tick())) == []
    assert kinds(story.after(1).tell(st.Tick())) == [st.Stop]
    story.tell(st.Ended(REF, TERMINATED))
    assert isinstance(story.reports(st.Settled(REF, SAVED))[0], Checkpointed)


def test_a_checkpoint_that_does_not_verify_is_none() -> None:
    story = Story().running()
    story.tell(CheckpointOrder(TASK, 1, 1), st.Answered(REF, "7"), st.Ended(REF, LEFT))
    (report,) = story.reports(st.Settled(REF, None, "sha256 differs"))
    assert isinstance(report, Stopped)
    assert "sha256 differs" in report.reason


def test_a_task_that_declines_or_is_silent_runs_on() -> None:
    story = Story().running()
    story.tell(CheckpointOrder(TASK, 1, 1))
    assert story.reports(st.Declined(REF, "busy")) == [
        CheckpointFailed(TASK, 1, 1, "the task said: busy")
    ]
    story.tell(CheckpointOrder(TASK, 1, 2))
    out = story.after(GRACE_MS).tell(st.Tick())
    assert kinds(out) == [st.CancelCheckpoint, st.Tell]
    assert story.machine.copies[REF].phase is Phase.RUNNING
    assert story.reports(CheckpointOrder(TASK, 1, 2)) == []  # answered already
    assert story.reports(st.Answered(REF, "late")) == []


def test_a_signal_counts_only_with_a_checkpoint_written_since() -> None:
    story = Story().after(1_000).running(CheckpointPolicy(GRACE_MS, 15), listens=False)
    assert st.Signal(REF, 15) in story.tell(CheckpointOrder(TASK, 1, 1))
    settle = story.tell(st.Ended(REF, TERMINATED))[-1]
    assert settle == st.Settle(REF, publish=True, not_before_ms=1_000)
    assert isinstance(story.reports(st.Settled(REF, None, "too old"))[0], Stopped)


def test_a_task_that_obeys_the_signal_after_its_time_has_checkpointed_all_the_same() -> None:
    story = Story().running(CheckpointPolicy(GRACE_MS, 15), listens=False)
    story.tell(CheckpointOrder(TASK, 1, 1))
    assert isinstance(story.after(GRACE_MS).reports(st.Tick())[0], CheckpointFailed)
    story.tell(st.Ended(REF, TERMINATED))
    assert isinstance(story.reports(st.Settled(REF, SAVED))[0], Checkpointed)


def test_a_task_without_any_way_is_given_a_moment_to_listen() -> None:
    story = Story().running(listens=False)
    assert kinds(story.tell(CheckpointOrder(TASK, 1, 1))) == [st.AskCheckpoint]
    (failed,) = story.after(LISTEN_PATIENCE_MS).reports(st.Tick())
    assert isinstance(failed, CheckpointFailed)
    assert "does not listen" in failed.reason


def test_a_task_that_may_restart_is_stopped() -> None:
    story = Story().running(CheckpointPolicy(GRACE_MS, restart=True), listens=False)
    assert kinds(story.tell(CheckpointOrder(TASK, 1, 1)))[-1] is st.Stop
    assert isinstance(story.reports(st.Ended(REF, TERMINATED), st.Settled(REF))[0], Stopped)


def test_code_85_unasked_is_start_me_again() -> None:
    story = Story().running()
    settle = story.tell(st.Ended(REF, LEFT))[-1]
    assert settle == st.Settle(REF, publish=True)
    assert isinstance(story.reports(st.Settled(REF, SAVED))[0], Checkpointed)


def test_a_crash_under_a_request_is_a_crash() -> None:
    story = Story().running()
    story.tell(CheckpointOrder(TASK, 1, 1))
    assert story.tell(st.Ended(REF, CRASHED))[-1] == st.Settle(REF)
    assert isinstance(story.reports(st.Settled(REF))[0], Exited)


# ------------------------------------------------------------------------------------ being alone
def test_without_a_master_it_checkpoints_stops_and_ends() -> None:
    story = Story().running()
    story.tell(st.MasterHeard(5_000))
    assert story.machine.next_deadline_ms() == 5_000
    assert kinds(story.after(5_000).tell(st.Tick())) == [st.AskCheckpoint]
    out = story.after(GRACE_MS).tell(st.Tick())
    assert kinds(out) == [st.CancelCheckpoint, st.Tell, st.Stop]
    story.tell(st.Ended(REF, TERMINATED))
    assert kinds(story.tell(st.Settled(REF))) == [st.Tell, st.ShutDown]
    assert story.machine.next_deadline_ms() is None


def test_dismissed_it_stops_all_and_ends_and_starts_nothing() -> None:
    story = Story().running()
    assert kinds(story.tell(st.Dismissed())) == [st.Stop]
    (refused,) = story.reports(order(task=TaskId("j.1")))
    assert isinstance(refused, StartFailed)
    assert "winding up" in refused.reason
    story.tell(st.Ended(REF, TERMINATED))
    assert st.ShutDown("dismissed by the master") in story.tell(st.Settled(REF))


def test_dismissed_with_nothing_to_do_it_ends_at_once() -> None:
    assert kinds(Story().tell(st.Dismissed())) == [st.ShutDown]


# -------------------------------------------------------------------------------------- taken back
NOTICE = st.SpotNoticeHeard(120_000)


def test_a_spot_notice_is_reported_once_and_nothing_starts_any_more() -> None:
    story = Story()
    assert story.reports(NOTICE) == [SpotNoticed(120_000)]
    assert story.reports(NOTICE) == []
    (refused,) = story.reports(order())
    assert isinstance(refused, StartFailed)
    assert refused.infrastructure
    assert "taken back" in refused.reason


def test_after_a_notice_a_checkpoint_has_two_thirds_of_what_is_left() -> None:
    story = Story().running(CheckpointPolicy(600_000))
    story.tell(NOTICE)
    (ask,) = [i for i in story.tell(CheckpointOrder(TASK, 1, 1)) if isinstance(i, st.AskCheckpoint)]
    assert ask.grace_ms == 80_000
    (failed,) = story.after(80_000).reports(st.Tick())
    assert isinstance(failed, CheckpointFailed)
    assert failed.reason == "no answer within 80000 ms"


def test_a_checkpoint_under_way_is_hurried_by_a_notice() -> None:
    story = Story().running(CheckpointPolicy(600_000))
    story.tell(CheckpointOrder(TASK, 1, 1), NOTICE)
    assert story.machine.copies[REF].deadline_ms == 80_000


def test_a_short_grace_stays_as_it_is_and_a_late_notice_leaves_a_moment() -> None:
    story = Story().running(CheckpointPolicy(5_000))
    story.tell(NOTICE, CheckpointOrder(TASK, 1, 1))
    assert story.machine.copies[REF].deadline_ms == 5_000
    late = Story().running()
    late.tell(st.SpotNoticeHeard(0), CheckpointOrder(TASK, 1, 1))
    assert late.machine.copies[REF].deadline_ms == SHORTEST_GRACE_MS


def test_what_no_master_asks_for_is_saved_after_a_quarter_of_the_notice() -> None:
    story = Story().running()
    story.tell(NOTICE)
    assert story.machine.next_deadline_ms() == 30_000
    assert kinds(story.after(30_000).tell(st.Tick())) == [st.AskCheckpoint]
    assert kinds(story.tell(CheckpointOrder(TASK, 1, 1))) == []  # late: it is under way
    story.tell(st.Answered(REF, "7"), st.Ended(REF, LEFT))
    (report,) = story.reports(st.Settled(REF, SAVED))
    assert isinstance(report, Checkpointed)
    assert not story.machine.winding_up


# ----------------------------------------------------------------------------------------- tables
def test_every_phase_is_told_and_can_be_left_towards_the_end() -> None:
    assert set(TOLD_AS) == set(Phase)
    assert TOLD_AS[Phase.ENDED] is CopyState.ENDED
    leads = {Phase.ENDED}
    while more := {a for (a, _), b in TABLE.items() if b in leads} - leads:
        leads |= more
    assert leads == set(Phase)


def test_what_is_not_in_the_table_is_a_bug() -> None:
    with pytest.raises(InvariantError, match="bug in the worker"):
        LocalCopy(order(), 0).step(Step.SETTLE)


def test_virtual_capacity_is_accounted_and_nobody_is_pinned() -> None:
    inventory = Inventory(Resources(0, 96_000, 1_024), (0, 1))
    assert inventory.take(Resources(0, 64_000, 512), []).cpus == ()
    with pytest.raises(CapacityError, match="does not fit"):
        inventory.take(Resources(0, 64_000, 512), [Devices(Resources(0, 64_000, 512))])


def test_fractions_of_a_cpu_are_rounded_up_while_there_are_whole_ones() -> None:
    inventory = Inventory(Resources(0, 2_000, 1_024), (0, 1))
    half = Resources(0, 500, 1)
    taken: list[Devices] = []
    for _ in range(4):
        taken.append(inventory.take(half, taken))
    assert [devices.cpus for devices in taken] == [(0,), (1,), (), ()]


# ------------------------------------------------------------------------------- any story at all
ENDS = (FINISHED, LEFT, CRASHED, TERMINATED, TaskExit(ExitKind.LOST))
FINAL = (Checkpointed, Stopped, Exited, StartFailed)
POLICIES = (
    CheckpointPolicy(50),
    CheckpointPolicy(50, 15),
    CheckpointPolicy(50, restart=True),
)
REFS = [Ref(TaskId(f"j.{index}"), epoch) for index in range(2) for epoch in range(1, 3)]
stimuli: hs.SearchStrategy[Stimulus] = hs.one_of(
    hs.builds(
        lambda ref, policy: order(ref.epoch, policy, task=ref.task),
        hs.sampled_from(REFS),
        hs.sampled_from(POLICIES),
    ),
    hs.builds(lambda ref: StopOrder(*ref), hs.sampled_from(REFS)),
    hs.builds(
        lambda ref, attempt: CheckpointOrder(ref.task, ref.epoch, attempt),
        hs.sampled_from(REFS),
        hs.integers(1, 3),
    ),
    hs.builds(st.Listens, hs.sampled_from(REFS)),
    hs.builds(st.Launched, hs.sampled_from(REFS)),
    hs.builds(st.LaunchFailed, hs.sampled_from(REFS), hs.just("why"), hs.booleans()),
    hs.builds(st.Answered, hs.sampled_from(REFS), hs.just("7")),
    hs.builds(st.Declined, hs.sampled_from(REFS), hs.just("no")),
    hs.builds(st.Ended, hs.sampled_from(REFS), hs.sampled_from(ENDS)),
    hs.builds(st.Settled, hs.sampled_from(REFS), hs.none() | hs.just(SAVED)),
    hs.builds(st.Acknowledged, hs.integers(0, 12)),
    hs.builds(st.MasterHeard, hs.none() | hs.just(500)),
    hs.just(st.Tick()),
    hs.just(st.SpotNoticeHeard(1)),
)


@settings(max_examples=300, deadline=None)
@given(hs.lists(hs.tuples(hs.integers(0, 100), stimuli), max_size=60))
def test_each_copy_ends_once_after_it_settled_and_numbers_have_no_gaps(
    story: list[tuple[int, Stimulus]],
) -> None:
    machine, now_ms, told = Machine(Memory(), INVENTORY, 0), 0, []
    accepted: set[Ref] = set()
    settled: set[Ref] = set()
    ended: list[Ref] = []
    for passed_ms, stimulus in story:
        now_ms += passed_ms
        before = {ref: copy.phase for ref, copy in machine.copies.items()}
        for do in machine.handle(stimulus, now_ms):
            if isinstance(do, st.Launch):
                accepted.add(Ref(do.order.task, do.order.epoch))
            elif isinstance(do, st.Tell):
                told.append(do.number)
                ref = Ref(getattr(do.report, "task", TASK), getattr(do.report, "epoch", 0))
                if isinstance(do.report, FINAL) and before.get(ref) is Phase.SETTLING:
                    settled.add(ref)
                    ended.append(ref)
                elif isinstance(do.report, FINAL):
                    # Of a copy that never came: refused or called off; never of one that is here.
                    assert ref not in machine.copies or before.get(ref) is Phase.ENDED
        gpus = [
            gpu
            for copy in machine.copies.values()
            if copy.phase not in (Phase.SETTLING, Phase.ENDED)
            for gpu in copy.devices.gpus
        ]
        assert len(gpus) == len(set(gpus))
    assert told == list(range(1, len(told) + 1))
    assert len(ended) == len(set(ended))
    assert set(ended) <= accepted


@settings(max_examples=60, deadline=None)
@given(hs.lists(stimuli, max_size=30))
def test_what_is_written_down_is_what_is_remembered(story: list[Stimulus]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        notebook = Notebook(Path(folder) / "worker.db")
        machine = Machine(notebook.load(), INVENTORY, 0)
        notebook.begin()
        for now_ms, stimulus in enumerate(story):
            for do in machine.handle(stimulus, now_ms):
                match do:
                    case st.Tell(number, report):
                        notebook.keep_report(number, report)
                    case st.Keep(ref) if ref in machine.copies:
                        notebook.keep_copy(machine.copies[ref])
                    case st.KeepFloor(task, epoch):
                        notebook.keep_floor(task, epoch)
                    case st.Forget(ref):
                        notebook.forget_copy(ref)
                    case st.ForgetReports(number):
                        notebook.forget_reports(number)
        notebook.commit()
        again = Notebook(Path(folder) / "worker.db").load()
        assert again == machine.memory
        for instruction in Machine(again, INVENTORY, 0).resume():
            assert isinstance(instruction, st.Settle | st.Stop | st.AskCheckpoint)
        notebook.close()
