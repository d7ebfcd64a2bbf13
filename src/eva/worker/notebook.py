"""The worker's memory on disk: copies, unacknowledged reports, and the newest epoch of each task.

One SQLite file, each change committed and synced before its effect is seen by anybody. The user's
environment is not in it, because it may hold secrets: a start that was cut short is reported as
failed by the infrastructure and ordered anew, rather than resumed.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from eva.adapters.grpc.generated import worker_pb2 as pb
from eva.adapters.grpc.translate import (
    report_from_wire,
    report_to_wire,
    start_from_bytes,
    start_to_bytes,
)
from eva.model.errors import OperatorError
from eva.model.ids import TaskId
from eva.model.resources import Resources
from eva.ports.runtime import ExitKind, TaskExit
from eva.ports.workers import Report
from eva.worker.devices import Devices
from eva.worker.lifecycle import Phase
from eva.worker.machine import LocalCopy, Memory
from eva.worker.stimuli import Ref

_SCHEMA = """
CREATE TABLE IF NOT EXISTS reports (number INTEGER PRIMARY KEY, report BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS numbers (last INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS floors (task TEXT PRIMARY KEY, epoch INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS copies (
    task TEXT, epoch INTEGER, launch BLOB NOT NULL, rest TEXT NOT NULL, PRIMARY KEY (task, epoch)
) STRICT;
"""
_PLAIN = (
    "ordered_ms",
    "listens",
    "attempt",
    "asked_ms",
    "signalled",
    "answer",
    "deadline_ms",
    "stopped_by_us",
    "failure",
    "steps",
    "last_report",
)


class Notebook:
    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._base = sqlite3.connect(path, isolation_level=None)
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA synchronous = FULL")
            self._base.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise self._failed(error) from error

    def load(self) -> Memory:
        memory = Memory()
        for number, content in self._run("SELECT number, report FROM reports ORDER BY number"):
            report = report_from_wire(pb.NumberedReport.FromString(content))
            if report is not None:
                memory.reports[number] = report
        for (last,) in self._run("SELECT last FROM numbers"):
            memory.next_number = last + 1
        for task, epoch in self._run("SELECT task, epoch FROM floors"):
            memory.floors[TaskId(task)] = epoch
        for launch, rest in self._run("SELECT launch, rest FROM copies"):
            copy = LocalCopy(start_from_bytes(launch), 0)
            _restore(copy, json.loads(rest))
            memory.copies[copy.ref] = copy
        return memory

    def begin(self) -> None:
        """All that follows is written together by `commit`."""
        self._run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self._run("COMMIT")

    def keep_report(self, number: int, report: Report) -> None:
        content = report_to_wire(number, report).SerializeToString()
        self._run("INSERT OR REPLACE INTO reports VALUES (?, ?)", number, content)
        self._run("DELETE FROM numbers")
        self._run("INSERT INTO numbers VALUES (?)", number)

    def forget_reports(self, number: int) -> None:
        self._run("DELETE FROM reports WHERE number <= ?", number)

    def keep_floor(self, task: TaskId, epoch: int) -> None:
        self._run("INSERT OR REPLACE INTO floors VALUES (?, ?)", task, epoch)

    def keep_copy(self, copy: LocalCopy) -> None:
        self._run(
            "INSERT OR REPLACE INTO copies VALUES (?, ?, ?, ?)",
            copy.order.task,
            copy.order.epoch,
            start_to_bytes(copy.order),
            json.dumps(_rest(copy)),
        )

    def forget_copy(self, ref: Ref) -> None:
        self._run("DELETE FROM copies WHERE task = ? AND epoch = ?", ref.task, ref.epoch)

    def close(self) -> None:
        self._base.close()

    def _run(self, statement: str, *values: Any) -> list[Any]:
        try:
            return self._base.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> OperatorError:
        return OperatorError(
            f"the worker's notebook {self._path} cannot be used ({error}): check the space on its "
            "disk and its permissions; tasks run on meanwhile"
        )


def _rest(copy: LocalCopy) -> dict[str, Any]:
    end = copy.exit
    return {
        **{name: getattr(copy, name) for name in _PLAIN},
        "phase": copy.phase.name,
        "amount": list(copy.devices.amount),
        "cpus": list(copy.devices.cpus),
        "gpus": list(copy.devices.gpus),
        "exit": end
        and [end.kind.name, end.code, end.signal, end.detail, end.started_ms, end.finished_ms],
    }


def _restore(copy: LocalCopy, rest: dict[str, Any]) -> None:
    for name in _PLAIN:
        setattr(copy, name, rest[name])
    copy.failure = rest["failure"] and tuple(rest["failure"])
    copy.phase = Phase[rest["phase"]]
    copy.devices = Devices(Resources(*rest["amount"]), tuple(rest["cpus"]), tuple(rest["gpus"]))
    if rest["exit"]:
        kind, *others = rest["exit"]
        copy.exit = TaskExit(ExitKind[kind], *others)
