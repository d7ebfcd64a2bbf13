"""A job that keeps a book: `python stepping.py STEPS PER_SECOND SAVE_EVERY`.

Each copy opens with its epoch and where it goes on, each step follows with the epoch that made it.
Beside the checkpoints that Eva asks for it takes its own, as training loops do, so that a machine
that is lost costs a few steps and not all of them.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from eva_iterator import EvaIterator, current_task


def main() -> None:
    total, pace, save_every = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    done, epoch = current_task().steps, os.environ["EVA_EPOCH"]
    book = Path(os.environ["EVA_JOB_DIR"]) / f"book.{os.environ['EVA_RANK']}"
    steps = EvaIterator(range(done, total))
    with book.open("a", buffering=1) as file:
        file.write(f"{epoch} after {done}\n")
        for step in steps:
            file.write(f"{epoch} step {step + 1}\n")
            time.sleep(1 / pace)
            folder = steps.checkpoint_dir()
            if folder and (steps.should_checkpoint() or (step + 1) % save_every == 0):
                (folder / "model").write_text(str(step + 1))
                steps.checkpoint_done()


if __name__ == "__main__":
    main()
