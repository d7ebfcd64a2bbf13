"""A task that iterates and does nothing: its speed is all that it has in common with training.

Run as `python task.py JSON`, by its path, so that it starts with nothing but EvaIterator in it.
Work is the integral of its speed over the clock, not a count of naps, so a busy machine slows it
no more than it would slow a GPU. Speed is what the interference matrix says of those who run
beside it on the same instance; who they are is on the board, a folder where each task hangs out
its name while it runs. All tasks of a job advance as their slowest does: rank 0 does the sums, and
the others follow what it wrote down.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from eva_iterator import EvaIterator, current_task
from eva_iterator.task import Task

NAP_S = 0.02  # between steps: what is reported is late by no more than this
LOOK_S = 0.1  # between looks at the board


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def write(path: Path, content: object) -> None:
    """Whole or not at all, for others read it at any moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(content))
    partial.replace(path)


def read(path: Path) -> Any:
    """None where nothing is written."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


class Board:
    """Who runs where, and how far each job is, as files."""

    def __init__(self, root: Path, workload: str) -> None:
        job, rank = os.environ["EVA_JOB"], int(os.environ["EVA_RANK"])
        self.rank, self.ranks = rank, int(os.environ["EVA_WORLD_SIZE"])
        self._workload = workload
        self._slowed_by: dict[str, float] = json.loads((root / "matrix.json").read_text())[workload]
        # Sockets of one instance's tasks share a folder; nothing else tells a process where it is.
        self._instance = root / "instances" / Path(os.environ["EVA_SOCKET"]).parent.parent.name
        self._name = f"{job}.{rank}"
        self._job = root / "jobs" / job
        self._told: float | None = None

    def enter(self) -> None:
        write(self._instance / self._name, self._workload)

    def leave(self) -> None:
        (self._instance / self._name).unlink(missing_ok=True)
        (self._job / f"speed.{self.rank}").unlink(missing_ok=True)

    def speed(self) -> float:
        """This task's, told to its siblings; the job's, for rank 0."""
        own = 1.0
        for path in self._instance.iterdir():
            if path.name != self._name and not path.name.startswith("."):
                beside = read(path)
                own *= 1.0 if beside is None else self._slowed_by[beside]
        if own != self._told:
            write(self._job / f"speed.{self.rank}", own)
            self._told = own
        told = [read(self._job / f"speed.{rank}") for rank in range(self.ranks)]
        return 0.0 if None in told else float(min(told))

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def publish(self, done: float) -> None:
        if self.ranks > 1:
            write(self._job / "done", done)

    def published(self) -> float:
        return read(self._job / "done") or 0.0


class Work:
    """`done` steps of `total`, at `pace` per second when nothing slows it."""

    def __init__(
        self, board: Board, done: float, total: float, pace: float, asked: Callable[[], bool]
    ) -> None:
        self._board = board
        self.done = done
        self._total = total
        self._pace = pace
        self._asked = asked

    @property
    def over(self) -> bool:
        return self.done >= self._total

    def steps(self) -> Iterator[None]:
        """One item per step; sleeps in between. Ends when all is done, or somebody asks.

        It is asked between naps and not between steps: when a sibling has left for its checkpoint
        there is no next step.
        """
        handed_out = int(self.done)
        speed, now_s, look_s = 0.0, time.monotonic(), 0.0
        while not (self.over or self._asked()):
            began_s, now_s = now_s, time.monotonic()
            if self._board.leads:
                advance = (now_s - began_s) * speed * self._pace
                self.done = min(self._total, self.done + advance)
            if now_s - look_s >= LOOK_S or self.over:
                look_s, speed = now_s, self._board.speed()
                if self._board.leads:
                    self._board.publish(self.done)
                else:
                    self.done = max(self.done, self._board.published())
            while handed_out < int(self.done):
                handed_out += 1
                yield
            time.sleep(min(NAP_S, self._left_s(speed)))

    def _left_s(self, speed: float) -> float:
        pace = speed * self._pace
        return (self._total - self.done) / pace if pace > 0 else NAP_S


def main() -> None:
    wish = json.loads(sys.argv[1])
    root = Path(wish["board"])
    task = current_task()
    restored = task.restore_dir()
    done = 0.0 if restored is None else float((restored / "done").read_text())
    board = Board(root, wish["workload"])
    board.enter()
    diary = {"task": os.environ["EVA_TASK"], "epoch": int(os.environ["EVA_EPOCH"])}
    try:
        time.sleep(wish["init_s"])  # in which a real one would load its model
        diary["progress_ms"] = wall_ms()
        work = Work(board, done, wish["steps"], wish["pace"], task.should_checkpoint)
        for _ in EvaIterator(work.steps()):
            pass  # where a real one would train
        if not work.over:
            board.leave()
            _checkpoint(task, work.done, wish["upload_s"], diary)
        diary["finished_ms"] = wall_ms()
    finally:
        board.leave()
        write(root / "diary" / f"{diary['task']}.{diary['epoch']}", diary)


def _checkpoint(task: Task, done: float, upload_s: float, diary: dict[str, Any]) -> None:
    """Save, and leave with it."""
    diary["checkpoint_ms"] = wall_ms()
    time.sleep(upload_s)
    folder = task.checkpoint_dir()
    if folder is not None:
        (folder / "done").write_text(repr(done))
    task.checkpoint_done(asked=True)


if __name__ == "__main__":
    main()
