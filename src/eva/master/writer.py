"""The one door to the state: an event is durable before the controller sees it.

Events queue up here from users, workers, the cloud, the planner and the round timer. They are
written in order, many in one commit, then handled in the same order, and their commands are
carried out. So nothing is done that the journal does not explain, and nobody is told of anything
that a crash could undo.

What fails to be written is the submitter's to hear about if it was a user; what the world told us
is kept and written as soon as the journal takes it. Losing the lease, or not knowing whether a
commit happened, ends this master: the next one reads the journal and knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

import structlog

from eva.control.commands import Command
from eva.control.events import Event
from eva.control.invariants import check_touched
from eva.master.clock import Clock
from eva.master.definitions import Definition
from eva.master.memory import Memory
from eva.model.errors import EvaError
from eva.ports.journal import (
    Appended,
    Entry,
    Fact,
    Journal,
    JournalFullError,
    JournalUnreachableError,
    Lease,
)

MOST_AT_ONCE = 512
RETRY_S = 1.0

_log = structlog.get_logger("eva.master")


class Carrier(Protocol):
    def __call__(self, command: Command) -> None:
        """Carry out, without blocking."""
        ...


Witness = Callable[[int, Event, list[Command]], None]


@dataclass(slots=True, eq=False)
class _Post:
    """An event on its way, with what is to be durable beside it."""

    event: Event
    answer: asyncio.Future[Appended]
    definition: Definition | None = None
    claim: Callable[[int], Fact] | None = None
    keep: bool = True  # tried again where the journal refuses; a user is told instead

    def entries(self, memory: Memory, now_ms: int) -> list[Entry]:
        entries = [memory.entry(now_ms, self.event)]
        if self.definition is not None:
            entries.insert(0, memory.definition_entry(now_ms, self.definition))
        return entries


@dataclass(slots=True)
class Writer:
    """Queue, journal, controller, commands. `failed` is set when this master must end."""

    memory: Memory
    journal: Journal
    lease: Lease
    clock: Clock
    carry_out: Carrier
    witness: Witness
    retry_s: float = RETRY_S
    _waiting: list[_Post] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: bool = False

    def post(self, event: Event) -> asyncio.Future[Appended]:
        """Something happened. Never lost while this process lives; resolved once handled."""
        return self._enqueue(_Post(event, _future()))

    def submit(
        self, event: Event, definition: Definition | None, claim: Callable[[int], Fact] | None
    ) -> asyncio.Future[Appended]:
        """Something a user wants. Resolved once durable and handled, or failed with the reason."""
        return self._enqueue(_Post(event, _future(), definition, claim, keep=False))

    async def run(self) -> None:
        """Until cancelled; raises what must end this master."""
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                while self._waiting:
                    batch = list(islice(self._waiting, MOST_AT_ONCE))
                    del self._waiting[: len(batch)]
                    written = False
                    try:
                        written = await self._write(batch)
                    except BaseException:
                        self._waiting[:0] = batch  # for nobody is to wait for an answer for ever
                        raise
                    if not written:
                        await asyncio.sleep(self.retry_s)
        finally:
            self._ended = True
            for post in self._waiting:
                post.answer.cancel()

    async def drain(self) -> None:
        """Until everything that was posted so far is handled or refused."""
        answers = [post.answer for post in self._waiting]
        await asyncio.gather(*answers, return_exceptions=True)

    def _enqueue(self, post: _Post) -> asyncio.Future[Appended]:
        if self._ended:
            post.answer.cancel()
            return post.answer
        self._waiting.append(post)
        self._news.set()
        return post.answer

    async def _write(self, batch: Sequence[_Post]) -> bool:
        """Append and handle in order. Whether the journal took everything that must be kept."""
        now_ms = self.clock()
        futures = [
            self.journal.submit(
                self.lease,
                post.entries(self.memory, now_ms),
                None if post.claim is None else post.claim(now_ms),
            )
            for post in batch
        ]
        again: list[_Post] = []
        for post, future in zip(batch, futures, strict=True):
            try:
                appended = await asyncio.wrap_future(future)
            except (JournalFullError, JournalUnreachableError) as error:
                if isinstance(error, JournalUnreachableError) and error.in_doubt:
                    raise
                self._refused(post, error, again)
                continue
            self._handle(post, appended, now_ms)
        self._waiting[:0] = again
        return not again

    def _refused(self, post: _Post, error: EvaError, again: list[_Post]) -> None:
        if post.keep:
            _log.warning("journal refuses", of=type(post.event).__name__, reason=str(error))
            again.append(post)
        elif not post.answer.done():
            post.answer.set_exception(error)

    def _handle(self, post: _Post, appended: Appended, now_ms: int) -> None:
        if appended.earlier is None:
            memory = self.memory
            memory.seq = appended.seqs[-1]
            if post.definition is not None:
                memory.jobs[post.definition.job] = post.definition
            commands = memory.controller.handle(post.event, now_ms)
            check_touched(memory.state, post.event, commands)
            self.witness(now_ms, post.event, commands)
            for command in commands:
                self.carry_out(command)
        if not post.answer.done():
            post.answer.set_result(appended)


def _future() -> asyncio.Future[Appended]:
    return asyncio.get_running_loop().create_future()
