"""Processes for work that takes all cores, and that end with the command that started them.

They are spawned, not forked: a forked copy of a solver's threads is a way to hang. On Ctrl-C they
die silently, whatever raises in the command ends them at once instead of letting them finish, and
should the command be killed outright, each notices and follows.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from multiprocessing.sharedctypes import Synchronized
from typing import TypeVar

Advance = Callable[[int], None]  # so many more tasks have ended
Result = TypeVar("Result")
_POLL_S = 0.2  # how often progress is looked at while a future is awaited

_ended: Synchronized[int] | None = None  # in a worker: the count that it shares with its command


class Workers:
    """`count` processes and a counter that they raise as their tasks end."""

    def __init__(self, executor: ProcessPoolExecutor, ended: Synchronized[int]) -> None:
        self._executor = executor
        self._ended = ended
        self._seen = 0

    def submit(self, function: Callable[..., Result], /, *arguments: object) -> Future[Result]:
        return self._executor.submit(function, *arguments)

    def as_completed(
        self, futures: set[Future[Result]], advance: Advance
    ) -> Iterator[Future[Result]]:
        """Futures as they are done; `advance` is called from here with what workers counted."""
        while futures:
            done, futures = wait(futures, _POLL_S, return_when="FIRST_COMPLETED")
            ended = self._ended.value
            advance(ended - self._seen)
            self._seen = ended
            yield from done


@contextlib.contextmanager
def workers(count: int) -> Iterator[Workers]:
    context = multiprocessing.get_context("spawn")
    ended: Synchronized[int] = context.Value("q", 0)
    executor = ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(ended,))
    before = set(multiprocessing.active_children())
    try:
        yield Workers(executor, ended)
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        raise
    executor.shutdown()


def count_ended(number: int) -> None:
    """In a worker: raise the counter. Elsewhere nothing."""
    if _ended is not None:
        with _ended.get_lock():
            _ended.value += number


def _begin(ended: Synchronized[int]) -> None:
    global _ended  # noqa: PLW0603  # set once, when the process begins
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_follow_parent, daemon=True).start()
    _ended = ended


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # in the middle of whatever: results are written by the parent alone
