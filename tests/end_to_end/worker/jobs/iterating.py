"""Counts to a number, one step at a time, and writes each step it does to the job's folder.

argv: how many steps, seconds per step.
"""

import os
import sys
import time
from pathlib import Path

from eva_iterator import EvaIterator

total, step_s = int(sys.argv[1]), float(sys.argv[2])
done = Path(os.environ["EVA_JOB_DIR"]) / "done.txt"
restored = EvaIterator(()).restore_dir()
first = int((restored / "next").read_text()) if restored else 0
iterator = EvaIterator(range(first, total))
for step in iterator:
    time.sleep(step_s)
    with done.open("a") as file:
        file.write(f"{step}\n")
    if iterator.should_checkpoint():
        folder = iterator.checkpoint_dir()
        assert folder is not None
        (folder / "next").write_text(str(step + 1))
        iterator.checkpoint_done()
