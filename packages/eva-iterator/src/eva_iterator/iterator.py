"""`for batch in EvaIterator(loader)`: the one line that a training loop needs.

A step is counted when its batch is handed out, so at the end of the loop's body, where checkpoints
are taken, `steps` includes the step just made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Generic, Iterable, Iterator, TypeVar

from eva_iterator.manifest import PathLike
from eva_iterator.task import Task, current_task

Item = TypeVar("Item")


class EvaIterator(Generic[Item]):
    """Wraps any iterable; may be iterated again for each epoch, or made anew for each.

    Anything else that is asked of it (`dataset`, `batch_size`, `sampler`) is answered by the
    iterable inside, so that it can stand where a DataLoader stood.
    """

    def __init__(
        self, iterable: Iterable[Item], *, handle_sigterm: bool = False, task: Task | None = None
    ) -> None:
        self._iterable = iterable
        self._task = current_task() if task is None else task
        if handle_sigterm:
            self._task.handle_sigterm()

    def __iter__(self) -> Iterator[Item]:
        task = self._task
        for item in self._iterable:
            task.steps += 1
            yield item

    def __len__(self) -> int:
        return len(self._iterable)  # type: ignore[arg-type]  # a TypeError for one without length

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also while unpickling, before there is an iterable to ask
            raise AttributeError(name)
        return getattr(self._iterable, name)

    @property
    def steps(self) -> int:
        """Steps that the task has done, those before a restore included."""
        return self._task.steps

    def should_checkpoint(self) -> bool:
        """Whether Eva waits for a checkpoint: ask at the end of each step."""
        return self._task.should_checkpoint()

    def checkpoint_done(self, path: PathLike | None = None, *, leave: bool = True) -> bool:
        """See `Task.checkpoint_done`: records the checkpoint, and exits if Eva asked for it."""
        return self._task.checkpoint_done(path, leave=leave)

    def checkpoint_failed(self, reason: str = "") -> None:
        """Say that the checkpoint asked for will not come; the task goes on where it is."""
        self._task.checkpoint_failed(reason)

    def checkpoint_dir(self) -> Path | None:
        """A fresh folder to write the next checkpoint into; None outside Eva."""
        return self._task.checkpoint_dir()

    def restore_dir(self) -> Path | None:
        """The complete checkpoint to start from; None for a fresh start or outside Eva."""
        return self._task.restore_dir()
