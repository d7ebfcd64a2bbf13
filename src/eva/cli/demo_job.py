"""The job of `eva demo`: counts steps at a fixed pace, writes each down, checkpoints when asked.

Run as `python -m eva.cli.demo_job STEPS STEPS_PER_SECOND`. It is what a training loop looks like
with EvaIterator, without the training.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


def main() -> None:
    from eva_iterator import EvaIterator, current_task

    total, pace = int(sys.argv[1]), float(sys.argv[2])
    done = current_task().steps  # what the checkpoint says that we had
    rank = os.environ["EVA_RANK"]
    book = Path(os.environ["EVA_JOB_DIR"]) / f"steps.{rank}"
    print(
        f"rank {rank} on its epoch {os.environ['EVA_EPOCH']} goes on after step {done}", flush=True
    )
    began = time.monotonic()
    steps = EvaIterator(range(done, total))
    for step in steps:
        with book.open("a") as file:
            file.write(f"{step + 1}\n")
        time.sleep(max(0.0, began + (step + 1 - done) / pace - time.monotonic()))
        if steps.should_checkpoint():
            folder = steps.checkpoint_dir()
            if folder is not None:
                (folder / "model").write_text(str(step + 1))
                print(f"rank {rank} checkpoints at step {step + 1}", flush=True)
                steps.checkpoint_done()
    print(f"rank {rank} is done with {total} steps", flush=True)


if __name__ == "__main__":
    main()
