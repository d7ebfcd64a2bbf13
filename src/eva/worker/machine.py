"""The worker's state machine: `handle(stimulus, now) -> instructions`, without I/O or clock.

It holds the copies on this instance and the reports that the master has not acknowledged. Three
rules are its whole point. An end is told only on proof of stop, and only once the copy's files are
on global storage, so that whoever starts the next epoch finds them. What was told is kept until it
is acknowledged. And no epoch starts here that is not newer than all that have been here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eva.model.errors import CapacityError, InvariantError
from eva.model.ids import TaskId
from eva.ports.runtime import TaskExit
from eva.ports.workers import (
    CheckpointFailed,
    CheckpointOrder,
    CheckpointPolicy,
    Copy,
    PrepareOrder,
    Report,
    SpotNoticed,
    Started,
    StartFailed,
    StartOrder,
    StopOrder,
    Stopped,
)
from eva.worker import stimuli as st
from eva.worker.devices import Devices, Inventory
from eva.worker.lifecycle import NOTHING_LEFT, TABLE, TOLD_AS, Phase, Step
from eva.worker.stimuli import Instruction, Ref, Stimulus
from eva.worker.verdict import Ending, verdict, wants_checkpoint

DEFAULT_DEAD_MAN_MS = 600_000
LISTEN_PATIENCE_MS = 10_000  # for a task that may still be starting, or reconnecting to us
SHORTEST_GRACE_MS = 10_000  # clocks differ, so a notice that is nearly over may not be


@dataclass
class LocalCopy:
    """A copy on this instance. `attempt` is the last one asked for, answered or not."""

    order: StartOrder
    ordered_ms: int
    devices: Devices = field(default_factory=Devices)
    phase: Phase = Phase.STARTING
    listens: bool = False  # was heard on its socket at least once
    attempt: int = 0
    asked_ms: int | None = None  # the checkpoint at hand, or the last that a signal asked for
    signalled: bool = False  # a checkpoint was asked for by a signal that it may yet obey
    answer: str | None = None  # the folder of the checkpoint that it announced
    deadline_ms: int | None = None
    stopped_by_us: bool = False
    failure: tuple[str, bool] | None = None  # of the start: reason, infrastructure
    exit: TaskExit | None = None
    steps: int | None = None
    last_report: int = 0  # when this is acknowledged, it can be forgotten

    @property
    def ref(self) -> Ref:
        return Ref(self.order.task, self.order.epoch)

    @property
    def policy(self) -> CheckpointPolicy:
        return self.order.run.checkpoint

    def step(self, step: Step) -> None:
        following = TABLE.get((self.phase, step))
        if following is None:
            raise InvariantError(
                f"{self.ref} is {self.phase.value} and cannot {step.value}: a bug in the worker; "
                f"report it with the worker's log"
            )
        self.phase = following


@dataclass
class Memory:
    """What survives a restart of the worker; see `notebook` for how."""

    next_number: int = 1
    reports: dict[int, Report] = field(default_factory=dict)
    floors: dict[TaskId, int] = field(default_factory=dict)
    copies: dict[Ref, LocalCopy] = field(default_factory=dict)


class Machine:
    """`memory` is as read from disk; the driver then tells of every copy what became of it."""

    def __init__(self, memory: Memory, inventory: Inventory, now_ms: int) -> None:
        self.memory = memory
        self.inventory = inventory
        self.copies = memory.copies
        self.heard_ms = now_ms
        self.dead_man_ms = DEFAULT_DEAD_MAN_MS
        self.winding_up: str | None = None
        self.taken_back_ms: int | None = None  # the cloud ends this instance then
        self._save_by_ms: int | None = None  # when we save by ourselves what nobody asked for
        self._shut_down = False
        self._handlers: Mapping[type, Callable[[Any, int, list[Instruction]], None]] = {
            PrepareOrder: self._on_prepare,
            StartOrder: self._on_start,
            StopOrder: self._on_stop,
            CheckpointOrder: self._on_checkpoint,
            st.Listens: self._on_listens,
            st.Launched: self._on_launched,
            st.LaunchFailed: self._on_launch_failed,
            st.Answered: self._on_answered,
            st.Declined: self._on_declined,
            st.Ended: self._on_ended,
            st.Settled: self._on_settled,
            st.Acknowledged: self._on_acknowledged,
            st.MasterHeard: self._on_master_heard,
            st.Dismissed: self._on_dismissed,
            st.SpotNoticeHeard: self._on_spot_notice,
            st.Tick: self._on_tick,
        }

    def handle(self, stimulus: Stimulus, now_ms: int) -> list[Instruction]:
        out: list[Instruction] = []
        self._handlers[type(stimulus)](stimulus, now_ms, out)
        self._conclude(out)
        return out

    def describe(self) -> tuple[Copy, ...]:
        """The copies as the master is told of them."""
        return tuple(
            Copy(copy.order.task, copy.order.epoch, TOLD_AS[copy.phase])
            for _, copy in sorted(self.copies.items())
        )

    def next_deadline_ms(self) -> int | None:
        """When to tick next, if nothing else happens before; None: not at all."""
        deadlines = [c.deadline_ms for c in self.copies.values() if c.deadline_ms is not None]
        if self.winding_up is None:
            deadlines.append(self.heard_ms + self.dead_man_ms)
        if self._save_by_ms is not None:
            deadlines.append(self._save_by_ms)
        return min(deadlines, default=None)

    # Orders

    def _on_prepare(self, order: PrepareOrder, _now_ms: int, out: list[Instruction]) -> None:
        out.append(st.Prepare(order))

    def _on_start(self, order: StartOrder, now_ms: int, out: list[Instruction]) -> None:
        ref = Ref(order.task, order.epoch)
        if ref in self.copies:
            return  # ordered before: its reports tell
        refusal = self._refusal(ref)
        if refusal is not None:
            self._tell(StartFailed(order.task, order.epoch, refusal, infrastructure=True), out)
            return
        taken = [c.devices for c in self.copies.values() if c.phase not in NOTHING_LEFT]
        try:
            devices = self.inventory.take(order.run.demand, taken)
        except CapacityError as error:
            self._tell(StartFailed(order.task, order.epoch, str(error), infrastructure=True), out)
            return
        self.copies[ref] = LocalCopy(order, now_ms, devices)
        self._raise_floor(ref, out)
        out += [st.Keep(ref), st.Launch(order, devices)]

    def _refusal(self, ref: Ref) -> str | None:
        """Why a start may not be: this epoch is over, another copy is here, or we are leaving."""
        floor = self.memory.floors.get(ref.task, -1)
        if ref.epoch <= floor:
            return f"{ref} is stale: epoch {floor} has been here or was called off"
        if any(r.task == ref.task and c.phase is not Phase.ENDED for r, c in self.copies.items()):
            return f"an older copy of {ref.task} has not ended here"
        if self.winding_up is not None:
            return f"this worker is winding up: {self.winding_up}"
        if self.taken_back_ms is not None:
            return f"this instance is taken back at {self.taken_back_ms} ms"
        return None

    def _on_stop(self, order: StopOrder, _now_ms: int, out: list[Instruction]) -> None:
        ref = Ref(order.task, order.epoch)
        copy = self.copies.get(ref)
        if copy is None:
            self._raise_floor(ref, out)
            self._tell(Stopped(order.task, order.epoch, "no such copy here"), out)
        else:
            self._stop(copy, out)

    def _stop(self, copy: LocalCopy, out: list[Instruction]) -> None:
        if copy.phase is Phase.STARTING:
            if not copy.stopped_by_us:
                copy.stopped_by_us = True
                out += [st.Keep(copy.ref), st.CallOffLaunch(copy.ref)]
        elif copy.phase in (Phase.RUNNING, Phase.CHECKPOINTING):
            self._cancel_request(copy, out)
            copy.step(Step.STOP)
            copy.stopped_by_us = True
            out.append(st.Keep(copy.ref))
            self._order_stop(copy, out)

    def _order_stop(self, copy: LocalCopy, out: list[Instruction]) -> None:
        run = copy.order.run
        out.append(st.Stop(copy.ref, run.stop_signal, run.stop_grace_ms))

    def _on_listens(self, stimulus: st.Listens, _now_ms: int, out: list[Instruction]) -> None:
        copy = self.copies.get(stimulus.ref)
        if copy is not None and not copy.listens:
            copy.listens = True
            out.append(st.Keep(copy.ref))

    def _on_checkpoint(self, order: CheckpointOrder, now_ms: int, out: list[Instruction]) -> None:
        ref = Ref(order.task, order.epoch)
        copy = self.copies.get(ref)
        if copy is None:
            self._raise_floor(ref, out)
            self._tell(Stopped(order.task, order.epoch, "no such copy here"), out)
        elif copy.phase is Phase.RUNNING and order.attempt > copy.attempt:
            copy.attempt = order.attempt
            self._checkpoint(copy, now_ms, out)

    def _checkpoint(self, copy: LocalCopy, now_ms: int, out: list[Instruction]) -> None:
        """Ask by the best way that the task has; see `CheckpointPolicy`.

        A task that never listened may only not have got to it yet. Where there is no other way it
        is asked all the same, and given a moment to hear it.
        """
        policy = copy.policy
        grace_ms = self._grace_ms(policy.grace_ms, now_ms)
        copy.step(Step.CHECKPOINT)
        copy.asked_ms = now_ms
        copy.deadline_ms = now_ms + grace_ms
        if copy.listens:
            self._ask(copy, grace_ms, out)
        elif policy.signal is not None:
            copy.signalled = True
            out += [st.Keep(copy.ref), st.Signal(copy.ref, policy.signal)]
        elif policy.restart:
            self._stop(copy, out)
        else:
            patience_ms = min(grace_ms, LISTEN_PATIENCE_MS)
            copy.deadline_ms = now_ms + patience_ms
            self._ask(copy, patience_ms, out)

    def _grace_ms(self, wanted_ms: int, now_ms: int) -> int:
        """Of what a notice leaves, two thirds: the files have to get to global storage too."""
        if self.taken_back_ms is None:
            return wanted_ms
        left_ms = max(0, self.taken_back_ms - now_ms)
        return min(wanted_ms, max(SHORTEST_GRACE_MS, left_ms * 2 // 3))

    def _ask(self, copy: LocalCopy, grace_ms: int, out: list[Instruction]) -> None:
        out += [st.Keep(copy.ref), st.AskCheckpoint(copy.ref, copy.attempt, grace_ms)]

    # What becomes of copies

    def _on_launched(self, stimulus: st.Launched, now_ms: int, out: list[Instruction]) -> None:
        copy = self.copies.get(stimulus.ref)
        if copy is None or copy.phase is not Phase.STARTING:
            return
        copy.step(Step.LAUNCHED)
        out.append(st.Keep(copy.ref))
        if copy.stopped_by_us:
            self._stop(copy, out)
            return
        launch_ms = max(0, now_ms - copy.ordered_ms)
        self._tell(Started(copy.order.task, copy.order.epoch, launch_ms), out)
        if self.winding_up is not None:
            self._stop(copy, out)

    def _on_launch_failed(
        self, stimulus: st.LaunchFailed, _now_ms: int, out: list[Instruction]
    ) -> None:
        copy = self.copies.get(stimulus.ref)
        if copy is None or copy.phase is not Phase.STARTING:
            return
        copy.failure = (stimulus.reason, stimulus.infrastructure)
        copy.step(Step.FAIL)
        out += [st.Keep(copy.ref), st.Settle(copy.ref)]

    def _on_answered(self, stimulus: st.Answered, now_ms: int, out: list[Instruction]) -> None:
        """It makes no further step now, and should exit; if it does not, it is stopped."""
        copy = self.copies.get(stimulus.ref)
        if copy is None or copy.phase is not Phase.CHECKPOINTING:
            return
        copy.step(Step.ANSWER)
        copy.answer = stimulus.name
        copy.deadline_ms = now_ms + self._grace_ms(copy.order.run.stop_grace_ms, now_ms)
        out.append(st.Keep(copy.ref))

    def _on_declined(self, stimulus: st.Declined, _now_ms: int, out: list[Instruction]) -> None:
        copy = self.copies.get(stimulus.ref)
        if copy is not None and copy.phase is Phase.CHECKPOINTING:
            self._give_up(copy, f"the task said: {stimulus.reason or 'no'}", out)

    def _give_up(self, copy: LocalCopy, reason: str, out: list[Instruction]) -> None:
        self._cancel_request(copy, out)
        copy.step(Step.GIVE_UP)
        out.append(st.Keep(copy.ref))
        failed = CheckpointFailed(copy.order.task, copy.order.epoch, copy.attempt, reason)
        self._tell(failed, out)
        if self.winding_up is not None:
            self._stop(copy, out)

    def _cancel_request(self, copy: LocalCopy, out: list[Instruction]) -> None:
        copy.deadline_ms = None
        if copy.phase is Phase.CHECKPOINTING and not copy.signalled:
            out.append(st.CancelCheckpoint(copy.ref))

    def _on_ended(self, stimulus: st.Ended, _now_ms: int, out: list[Instruction]) -> None:
        copy = self.copies.get(stimulus.ref)
        if copy is None or copy.phase in NOTHING_LEFT:
            return
        if copy.phase is Phase.STARTING:
            # It ended while we were away, or before we heard that it began.
            copy.step(Step.LAUNCHED)
            if not copy.stopped_by_us:
                self._tell(Started(copy.order.task, copy.order.epoch), out)
        copy.step(Step.END)
        copy.exit = stimulus.exit
        copy.steps = stimulus.steps
        copy.deadline_ms = None
        out.append(st.Keep(copy.ref))
        out.append(self._settling(copy))

    def _settling(self, copy: LocalCopy) -> st.Settle:
        if copy.exit is None:
            return st.Settle(copy.ref)
        publish = wants_checkpoint(self._ending(copy, copy.exit))
        by_signal = copy.signalled and copy.answer is None
        not_before_ms = (copy.asked_ms or 0) if by_signal else 0
        return st.Settle(copy.ref, publish, copy.answer, not_before_ms)

    def _on_settled(self, stimulus: st.Settled, now_ms: int, out: list[Instruction]) -> None:
        copy = self.copies.get(stimulus.ref)
        if copy is None or copy.phase is not Phase.SETTLING:
            return
        copy.step(Step.SETTLE)
        if copy.exit is not None:
            ending = self._ending(copy, copy.exit)
            report = verdict(ending, stimulus.checkpoint, stimulus.problem, now_ms)
        else:
            report = self._start_failed(copy)
        copy.last_report = self._tell(report, out)
        out.append(st.Keep(copy.ref))

    def _start_failed(self, copy: LocalCopy) -> Report:
        task, epoch = copy.ref
        if copy.stopped_by_us:
            return Stopped(task, epoch, "its start was called off")
        reason, infrastructure = copy.failure or ("the worker ended before starting it", True)
        return StartFailed(task, epoch, reason, infrastructure)

    def _ending(self, copy: LocalCopy, end: TaskExit) -> Ending:
        return Ending(
            copy.ref,
            end,
            attempt=copy.attempt,
            asked_ms=copy.asked_ms,
            answered=copy.answer is not None,
            signalled=copy.signalled,
            stopped_by_us=copy.stopped_by_us,
            steps=copy.steps,
        )

    def resume(self) -> list[Instruction]:
        """After a restart: what was under way and must be asked for again."""
        out: list[Instruction] = []
        for _, copy in sorted(self.copies.items()):
            if copy.phase is Phase.SETTLING:
                out.append(self._settling(copy))
            elif copy.phase is Phase.STOPPING:
                self._order_stop(copy, out)
            elif copy.phase is Phase.CHECKPOINTING and not copy.signalled:
                out.append(st.AskCheckpoint(copy.ref, copy.attempt, copy.policy.grace_ms))
        return out

    # The master

    def _on_acknowledged(
        self, stimulus: st.Acknowledged, _now_ms: int, out: list[Instruction]
    ) -> None:
        reports = self.memory.reports
        for number in [number for number in reports if number <= stimulus.number]:
            del reports[number]
        out.append(st.ForgetReports(stimulus.number))
        for ref, copy in sorted(self.copies.items()):
            if copy.phase is Phase.ENDED and copy.last_report <= stimulus.number:
                del self.copies[ref]
                out.append(st.Forget(ref))

    def _on_master_heard(
        self, stimulus: st.MasterHeard, now_ms: int, _out: list[Instruction]
    ) -> None:
        self.heard_ms = now_ms
        if stimulus.dead_man_ms is not None:
            self.dead_man_ms = stimulus.dead_man_ms

    def _on_dismissed(self, _stimulus: st.Dismissed, _now_ms: int, out: list[Instruction]) -> None:
        self.winding_up = "dismissed by the master"
        for _, copy in sorted(self.copies.items()):
            self._stop(copy, out)

    def _on_spot_notice(
        self, stimulus: st.SpotNoticeHeard, now_ms: int, out: list[Instruction]
    ) -> None:
        """Told to the master, who moves the tasks; graces that were longer end in time.

        If no order has come after a quarter of what is left, the tasks are saved without one.
        """
        if self.taken_back_ms is not None:
            return
        self.taken_back_ms = stimulus.deadline_ms
        self._save_by_ms = now_ms + max(0, stimulus.deadline_ms - now_ms) // 4
        self._tell(SpotNoticed(stimulus.deadline_ms), out)
        for copy in self.copies.values():
            if copy.deadline_ms is not None:
                left_ms = copy.deadline_ms - now_ms
                copy.deadline_ms = now_ms + self._grace_ms(left_ms, now_ms)

    # Time

    def _on_tick(self, _stimulus: st.Tick, now_ms: int, out: list[Instruction]) -> None:
        for _, copy in sorted(self.copies.items()):
            if copy.deadline_ms is None or now_ms < copy.deadline_ms:
                continue
            copy.deadline_ms = None
            if copy.phase is Phase.CHECKPOINTING:
                self._give_up(copy, self._silence(copy, now_ms), out)
            elif copy.phase is Phase.LEAVING:
                self._order_stop(copy, out)
        if self.winding_up is None and now_ms >= self.heard_ms + self.dead_man_ms:
            self._wind_up(now_ms, out)
        if self._save_by_ms is not None and now_ms >= self._save_by_ms:
            self._save_by_ms = None
            self._save_all(now_ms, out)

    def _silence(self, copy: LocalCopy, now_ms: int) -> str:
        if copy.listens or copy.signalled:
            asked_ms = now_ms if copy.asked_ms is None else copy.asked_ms
            return f"no answer within {now_ms - asked_ms} ms"
        return (
            "the task does not listen on $EVA_SOCKET, and its job neither names a signal nor "
            "allows a restart: set checkpoint.signal, or use EvaIterator"
        )

    def _wind_up(self, now_ms: int, out: list[Instruction]) -> None:
        """Nobody has told us anything for too long: save what can be saved, and end the expense.

        Who does not checkpoint in time is stopped.
        """
        self.winding_up = f"no word from the master for {self.dead_man_ms} ms"
        self._save_all(now_ms, out)

    def _save_all(self, now_ms: int, out: list[Instruction]) -> None:
        for _, copy in sorted(self.copies.items()):
            if copy.phase is Phase.RUNNING:
                copy.attempt += 1
                self._checkpoint(copy, now_ms, out)
            elif copy.phase is Phase.STARTING:
                self._stop(copy, out)

    def _conclude(self, out: list[Instruction]) -> None:
        """Once nothing is left here, a worker that winds up ends."""
        if self.winding_up is None or self._shut_down:
            return
        if all(copy.phase is Phase.ENDED for copy in self.copies.values()):
            self._shut_down = True
            out.append(st.ShutDown(self.winding_up))

    # Details

    def _tell(self, report: Report, out: list[Instruction]) -> int:
        number = self.memory.next_number
        self.memory.next_number += 1
        self.memory.reports[number] = report
        out.append(st.Tell(number, report))
        return number

    def _raise_floor(self, ref: Ref, out: list[Instruction]) -> None:
        if ref.epoch > self.memory.floors.get(ref.task, -1):
            self.memory.floors[ref.task] = ref.epoch
            out.append(st.KeepFloor(ref.task, ref.epoch))
