"""Hugging Face Trainer: `Trainer(..., callbacks=[EvaCallback()])`, and to start where it stopped
`trainer.train(resume_from_checkpoint=EvaCallback.restore_path())`.

The Trainer saves as it always does, below its `output_dir`; the callback then copies that
checkpoint to where Eva looks for it, and ends the process if it was Eva who asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from eva_iterator.integrations.distributed import any_process, wait_for_all
from eva_iterator.task import current_task

if TYPE_CHECKING:  # transformers is not needed to check types
    _TrainerCallback = object
else:
    from transformers import TrainerCallback as _TrainerCallback


class EvaCallback(_TrainerCallback):
    """`agree_every`: with several processes, steps between two votes on whether to checkpoint.

    `record_saves=False` leaves the Trainer's regular saves alone and copies only what Eva asks for.
    """

    def __init__(self, agree_every: int = 10, *, record_saves: bool = True) -> None:
        self._task = current_task()
        self._agree_every = max(1, agree_every)
        self._record_saves = record_saves
        self._asked = False

    @staticmethod
    def restore_path() -> str | None:
        """What to give to `resume_from_checkpoint`; None for a fresh start."""
        folder = current_task().restore_dir()
        return None if folder is None else str(folder)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._task.steps = state.global_step

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        self._task.steps = state.global_step
        alone = getattr(args, "world_size", 1) == 1
        if alone or state.global_step % self._agree_every == 0:
            self._asked = any_process(flag=self._task.should_checkpoint())
        if self._asked:
            control.should_save = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not self._asked and not self._record_saves:
            return
        wait_for_all()
        saved = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        # On the other nodes of a gang without a shared output_dir there may be nothing to copy.
        self._task.checkpoint_done(saved if saved.exists() else None, asked=self._asked)
