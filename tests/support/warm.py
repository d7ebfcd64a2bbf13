"""Eva started in a third of a second: forked from a process that has everything imported.

Starting `eva serve` takes two seconds of a core, of which nearly all goes into imports. Tests that
start masters and workers by the hundred fork them from one process that did this once. From there
on it is the same program with the same words: a session of its own, its own output, killed like any
other.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from eva.cli.serving import LOG_FILE, is_answering, serve_words
from eva.master.options import ServeOptions
from eva.model.errors import OperatorError

_LOOK_EVERY_S, _WITHIN_S = 0.03, 60.0
# What masters and workers import, and what they would only import while they start.
_IMPORTED = (
    "boto3",
    "botocore.client",
    "eva.cli.main",
    "eva.cli.policies",
    "eva.master.server",
    "eva.worker.main",
    "eva.worker.serving",
    "pydantic.v1",
    "uvicorn.lifespan.off",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)


@dataclass(frozen=True)
class Start:
    """How a shell would start `eva` with these words."""

    words: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    folder: Path


class WarmMaster:
    """A master as `start_in_background` returns one."""

    def __init__(self, options: ServeOptions) -> None:
        options.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        start = Start(serve_words(options), dict(os.environ), options.home / LOG_FILE, Path.cwd())
        self._process = forked(be_eva, start)

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode


def start_warm(options: ServeOptions) -> WarmMaster:
    """Once it answers."""
    master = WarmMaster(options)
    deadline = time.monotonic() + _WITHIN_S
    while not is_answering(options.home, master.pid):
        if master.poll() is not None or time.monotonic() > deadline:
            said = (options.home / LOG_FILE).read_text()[-4_000:]
            master.kill()
            raise OperatorError(f"the master did not start:\n{said}")
        time.sleep(_LOOK_EVERY_S)
    return master


def forked(work: Callable[[Start], None], start: Start) -> ForkServerProcess:
    """A process that does `work`, a function of a module that needs little to be imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED))
    process = context.Process(target=work, args=(start,))
    process.start()
    return process


def be_eva(start: Start) -> None:
    """In the new process: as if a shell had started it."""
    os.setsid()
    # One of its own, so that what it leaves behind when it is killed is cleaned up then.
    resource_tracker.ResourceTracker.__init__(resource_tracker._resource_tracker)
    os.chdir(start.folder)
    os.environ.clear()
    os.environ.update(start.environment)
    output = os.open(start.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for number in (1, 2):
        os.dup2(output, number)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["eva", *start.words]
    from eva.cli.main import main  # noqa: PLC0415  with the environment that it is to see

    main()
