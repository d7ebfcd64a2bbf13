"""Lightning: `Trainer(callbacks=[EvaCallback()])`, and to start where it stopped
`trainer.fit(model, data, ckpt_path=EvaCallback.restore_path())`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from eva_iterator.task import current_task

if TYPE_CHECKING:  # Lightning is not needed to check types
    _Callback = object
else:
    try:
        from lightning.pytorch.callbacks import Callback as _Callback
    except ImportError:  # the older name of the same package
        from pytorch_lightning.callbacks import Callback as _Callback

FILE_NAME = "lightning.ckpt"


class EvaCallback(_Callback):
    """`agree_every`: with several processes, batches between two votes on whether to checkpoint."""

    def __init__(self, agree_every: int = 10) -> None:
        self._task = current_task()
        self._agree_every = max(1, agree_every)

    @staticmethod
    def restore_path() -> str | None:
        """What to give to `ckpt_path`; None for a fresh start."""
        folder = current_task().restore_dir()
        return None if folder is None else str(folder / FILE_NAME)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._task.steps = trainer.global_step

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._task.steps = trainer.global_step
        if trainer.world_size > 1 and (batch_idx + 1) % self._agree_every:
            return
        # Each task of a gang hears the request at its own moment; all checkpoint at the same batch.
        if trainer.strategy.reduce_boolean_decision(self._task.should_checkpoint(), all=False):
            self._checkpoint(trainer)

    def _checkpoint(self, trainer: Any) -> None:
        folder = self._task.checkpoint_dir() if self._task.environment.leads else None
        # Lightning writes from the first process, and needs to be called with one path by all.
        path = trainer.strategy.broadcast(None if folder is None else str(folder / FILE_NAME))
        trainer.save_checkpoint(path)
        self._task.checkpoint_done(None if path is None else Path(path).parent, asked=True)
