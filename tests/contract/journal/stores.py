"""The stores that the journal's contract is held against, each with its own sense of time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from eva.adapters import postgres, sqlite
from eva.adapters.memory.journal import MemoryJournal
from eva.ports.journal import Entry, Journal, Record
from tests.support.postgres import PostgresServer


class Store(Protocol):
    """Somewhere a journal is kept; every `open` is another master's view of it."""

    def open(self) -> Journal: ...
    def pass_time(self, duration_ms: int) -> None: ...
    def close(self) -> None: ...


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


class MemoryStore:
    def __init__(self) -> None:
        self._clock = Clock()
        self._journal = MemoryJournal(self._clock)

    def open(self) -> Journal:
        return self._journal

    def pass_time(self, duration_ms: int) -> None:
        self._clock.now_ms += duration_ms

    def close(self) -> None:
        self._journal.close()


class OpenedStore:
    """Closes what it opened, so that no test leaves a thread or a connection."""

    def __init__(self, opener: Callable[[], Journal], passer: Callable[[int], object]) -> None:
        self._opener = opener
        self._passer = passer
        self._opened: list[Journal] = []

    def open(self) -> Journal:
        journal = self._opener()
        self._opened.append(journal)
        return journal

    def pass_time(self, duration_ms: int) -> None:
        self._passer(duration_ms)

    def close(self) -> None:
        for journal in self._opened:
            journal.close()


def sqlite_store(folder: Path) -> Store:
    clock = Clock()

    def advance(duration_ms: int) -> None:
        clock.now_ms += duration_ms

    return OpenedStore(lambda: sqlite.open_journal(folder / "journal.db", clock), advance)


def postgres_store(server: PostgresServer) -> Store:
    url = server.new_schema()
    return OpenedStore(
        lambda: postgres.open_journal(url),
        lambda duration_ms: server.execute(f"SELECT pg_sleep({duration_ms / 1_000 + 0.01})"),
    )


def entries(*texts: str) -> list[Entry]:
    return [
        Entry(time_ms=number, kind="said", payload=text.encode())
        for number, text in enumerate(texts)
    ]


def texts(records: list[Record]) -> list[str]:
    return [record.payload.decode() for record in records]
