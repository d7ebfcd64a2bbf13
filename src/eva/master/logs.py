"""The output of tasks, kept here: instances go, and what a task printed must not go with them.

One follower per running copy writes to a file per (task, epoch), with the worker's cursor beside
it, so that after any interruption it goes on where it was. Files are bounded; what is beyond is
left with the worker and said so. Readers tail the files and never bother a worker.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from eva.model.errors import EvaError, TryAgainError
from eva.model.ids import InstanceId, JobId, TaskId
from eva.ports.runtime import LogCursor
from eva.ports.workers import WorkerAwayError, Workers

MOST_BYTES = 64 * 1024 * 1024
FINISH_WITHIN_S = 5.0
_TAIL_POLL_S = 0.1  # files tell nobody that they grew
_CHUNK = 64 * 1024
_CUT = b"\n[eva: output beyond 64 MiB is not kept]\n"

_log = structlog.get_logger("eva.logs")
_Copy = tuple[TaskId, int]


@dataclass(slots=True)
class LogKeeper:
    folder: Path
    workers: Workers
    _followers: dict[_Copy, asyncio.Task[None]] = field(default_factory=dict)

    def follow(self, instance: InstanceId, task: TaskId, epoch: int) -> None:
        """Keep what this copy prints from now on, unless that is being done."""
        running = self._followers.get((task, epoch))
        if running is None or running.done():
            following = self._follow(instance, task, epoch)
            self._followers[task, epoch] = asyncio.create_task(following)

    async def finish(self, task: TaskId, epoch: int) -> None:
        """The copy has ended: wait, but not for ever, until its last words are here."""
        running = self._followers.pop((task, epoch), None)
        if running is not None:
            await asyncio.wait({running}, timeout=FINISH_WITHIN_S)
            running.cancel()

    def epochs(self, task: TaskId) -> list[int]:
        folder = self._path(task, 1).parent
        return sorted(int(path.stem.rpartition(".")[2]) for path in folder.glob(f"{task}.*.log"))

    def files(self, job: JobId) -> list[Path]:
        return sorted((self.folder / job).glob("*.log"))

    async def read(self, task: TaskId, epoch: int, start: int = 0) -> AsyncIterator[bytes]:
        """What is there now, from byte `start` on."""
        path = self._path(task, epoch)
        if not path.exists():
            return
        with path.open("rb") as file:
            file.seek(start)
            while data := file.read(_CHUNK):
                yield data
                await asyncio.sleep(0)

    def is_followed(self, task: TaskId, epoch: int) -> bool:
        running = self._followers.get((task, epoch))
        return running is not None and not running.done()

    def forget(self, job: JobId) -> None:
        shutil.rmtree(self.folder / job, ignore_errors=True)

    async def close(self) -> None:
        followers = list(self._followers.values())
        self._followers.clear()
        for follower in followers:
            follower.cancel()
        await asyncio.gather(*followers, return_exceptions=True)

    async def _follow(self, instance: InstanceId, task: TaskId, epoch: int) -> None:
        path = self._path(task, epoch)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # whoever may see the home
        path.parent.mkdir(exist_ok=True)
        cursor_path = path.with_suffix(".cursor")
        cursor = LogCursor(cursor_path.read_text() if cursor_path.exists() else "")
        try:
            path.touch()
            async for chunk in self.workers.logs(instance, task, epoch, cursor):
                # Opened for each chunk: ten thousand running copies are not to hold a file each.
                with path.open("ab") as file:
                    if file.tell() + len(chunk.data) > MOST_BYTES:
                        file.write(_CUT)
                        return
                    file.write(chunk.data)
                cursor_path.write_text(chunk.cursor)
        except WorkerAwayError:
            pass  # it is followed again when the worker is back
        except (TryAgainError, EvaError, OSError) as error:
            _log.warning("output not kept", task=task, epoch=epoch, reason=str(error))

    def _path(self, task: TaskId, epoch: int) -> Path:
        return self.folder / task.rpartition(".")[0] / f"{task}.{epoch}.log"


async def lines(
    keeper: LogKeeper,
    tasks: Sequence[TaskId],
    *,
    follow: bool,
    is_over: Callable[[], bool],
) -> AsyncIterator[tuple[TaskId, str]]:
    """Whole lines of these tasks over all their epochs; with `follow`, until it is over."""
    positions: dict[_Copy, int] = {}
    rests: dict[_Copy, bytes] = {}
    while True:
        last_look = not follow or is_over()
        for task in tasks:
            for epoch in keeper.epochs(task):
                copy = (task, epoch)
                async for data in keeper.read(task, epoch, positions.get(copy, 0)):
                    positions[copy] = positions.get(copy, 0) + len(data)
                    *whole, rests[copy] = (rests.get(copy, b"") + data).split(b"\n")
                    for line in whole:
                        yield task, line.decode(errors="replace")
        if last_look:
            for (task, _), rest in rests.items():
                if rest:
                    yield task, rest.decode(errors="replace")
            return
        await asyncio.sleep(_TAIL_POLL_S)
