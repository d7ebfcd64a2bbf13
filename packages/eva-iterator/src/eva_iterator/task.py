"""This process as a task of Eva: its step count, its checkpoints, and where they go.

There is one `Task` per process, whatever the number of iterators, because the worker counts the
steps of a task and not of a loop. `EvaIterator` and the integrations are thin skins over it.
"""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import signal
import threading
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

from eva_iterator.environment import Environment
from eva_iterator.errors import CheckpointError, EvaIteratorError
from eva_iterator.manifest import PathLike, read_manifest, write_manifest
from eva_iterator.protocol import (
    CHECKPOINTED_EXIT_CODE,
    UNASKED,
    Checkpointed,
    CheckpointFailed,
)
from eva_iterator.reporter import INTERVAL_S, OPENING, Reporter


class Task:
    """`steps` is a plain attribute: add to it, or set it, from the one thread that steps."""

    def __init__(self, environment: Environment, interval_s: float = INTERVAL_S) -> None:
        self.environment = environment
        self.steps = _restored_steps(environment)
        self._folder: Path | None = None  # handed out and not yet made complete
        self._signalled = False
        self._previous_handler: Any = None
        self._reporter: Reporter | None = None
        if environment.socket is not None and environment.leads:
            self._reporter = Reporter(
                environment.socket,
                lambda: self.steps,
                environment.window_ms,
                can_checkpoint=environment.checkpoint_dir is not None,
                interval_s=interval_s,
            )
            self._reporter.start()

    def should_checkpoint(self) -> bool:
        """Whether Eva waits for a checkpoint now. Cheap enough for every step; never blocks."""
        reporter = self._reporter
        return self._signalled or (reporter is not None and reporter.request is not None)

    def checkpoint_dir(self) -> Path | None:
        """A fresh folder to write the next checkpoint into; None outside Eva.

        The same one is returned until `checkpoint_done`, so asking twice does no harm. It is never
        one that an earlier checkpoint stands in: a failed attempt must not spoil what is complete.
        """
        root = self.environment.checkpoint_dir
        if root is None:
            return None
        if self._folder is None:
            self._folder = _fresh(root, self.steps)
        return self._folder

    def restore_dir(self) -> Path | None:
        """The complete checkpoint to start from; None for a fresh start or outside Eva."""
        return self.environment.restore_dir

    def checkpoint_done(
        self, path: PathLike | None = None, *, leave: bool = True, asked: bool = False
    ) -> bool:
        """Make the checkpoint complete, tell the worker, and exit if it was Eva who asked.

        Without `path`, the folder of `checkpoint_dir()` is the checkpoint. A path elsewhere, file
        or folder, is copied there first. If Eva asked (or `asked` says that it asked another
        process of the same job), the process exits with code 85, "start me again from here", for
        any further step would be done twice; with `leave=False` it returns True and the caller
        must stop. A checkpoint that nobody asked for is recorded, and False returned.
        """
        root = self.environment.checkpoint_dir
        if root is None:
            return False
        stop = asked or self._signalled
        if self.environment.leads:
            folder = self._adopt(root, path)
            write_manifest(folder, step=self.steps)
            self._folder = None
            stop = self._answer(folder.relative_to(root).as_posix()) or stop
        if stop and leave:
            self.close()
            raise SystemExit(CHECKPOINTED_EXIT_CODE)
        return stop

    def _answer(self, name: str) -> bool:
        """Tell the worker, if there is one; whether it had asked. The request is read just once,
        for the worker may take it back at any moment.
        """
        if self._reporter is None:
            return False
        request = self._reporter.request
        self._reporter.answer(Checkpointed(request.request if request else UNASKED, name))
        return request is not None

    def checkpoint_failed(self, reason: str = "") -> None:
        """Tell the worker that the checkpoint it asked for will not come; the task goes on."""
        self._folder = None
        if self._signalled:
            self._signalled = False
            self.handle_sigterm()
        reporter = self._reporter
        request = reporter.request if reporter is not None else None
        if reporter is not None and request is not None:
            reporter.answer(CheckpointFailed(request.request, reason))

    def handle_sigterm(self) -> None:
        """From now on SIGTERM means "checkpoint, please"; a second one does what it did before."""
        if self.environment.checkpoint_dir is None or self._previous_handler is not None:
            return
        if threading.current_thread() is not threading.main_thread():
            raise EvaIteratorError(
                f"handle_sigterm was called in thread {threading.current_thread().name!r}: "
                "call it in the main thread, the only one that may set handlers"
            )
        previous = signal.signal(signal.SIGTERM, self._on_sigterm)
        self._previous_handler = signal.SIG_DFL if previous is None else previous

    def close(self) -> None:
        """End the background thread; `steps` may go on counting, for nobody."""
        self._restore_handler()
        reporter, self._reporter = self._reporter, None
        if reporter is not None:
            reporter.close()

    def abandon(self) -> None:
        """What is left of it in a forked child, such as a DataLoader worker: a silent counter."""
        self._restore_handler()
        self._signalled = False
        reporter, self._reporter = self._reporter, None
        if reporter is not None:
            reporter.abandon()

    def _on_sigterm(self, _number: int, _frame: FrameType | None) -> None:
        self._signalled = True
        self._restore_handler()

    def _restore_handler(self) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        if self._previous_handler is not None and in_main:
            signal.signal(signal.SIGTERM, self._previous_handler)
            self._previous_handler = None

    def _adopt(self, root: Path, path: PathLike | None) -> Path:
        """The checkpoint's folder below `root`, copied there if it was written elsewhere."""
        if path is None:
            return self._folder if self._folder is not None else root
        source = Path(path)
        if not source.exists():
            raise CheckpointError(str(source), ["does not exist: write the checkpoint first"])
        inside = source.resolve()
        base = root.resolve()
        if source.is_dir() and (inside == base or base in inside.parents):
            return root / inside.relative_to(base)
        folder = self._folder if self._folder is not None else _fresh(root, self.steps)
        # A copy and not links: what is written over later must not change the checkpoint.
        if source.is_dir():
            shutil.copytree(str(source), str(folder), dirs_exist_ok=True)
        elif folder.resolve() not in inside.parents:
            shutil.copy2(str(source), str(folder / source.name))
        return folder


def _fresh(root: Path, steps: int) -> Path:
    for attempt in itertools.count(1):
        suffix = "" if attempt == 1 else f".{attempt}"
        folder = root / f"step-{steps:09d}{suffix}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue  # an earlier attempt, complete or not
        return folder
    raise AssertionError("itertools.count has no end")


def _restored_steps(environment: Environment) -> int:
    if environment.restore_dir is None:
        return 0
    return read_manifest(environment.restore_dir).step or 0


@lru_cache(maxsize=None)
def current_task() -> Task:
    """The task that this process is; the first call starts reporting if Eva gave a socket."""
    task = Task(Environment.read())
    if task.environment.inside_eva:
        os.register_at_fork(
            before=OPENING.acquire, after_in_parent=OPENING.release, after_in_child=OPENING.release
        )
        os.register_at_fork(after_in_child=task.abandon)
        atexit.register(task.close)  # so that the last second of steps is reported too
    return task
