# mypy: ignore-errors
# ruff: noqa: T201
# (a script as users write it: untyped, and it prints)
"""A job without any framework: sums numbers, writing down each step before it counts.

Its log is the witness: every step once, in order, whatever happened to the process in between.
"""

import json
import os
import sys
import time
from pathlib import Path

from eva_iterator import EvaIterator

STEPS, STEP_S = int(sys.argv[1]), float(sys.argv[2])

state = {"next": 0, "sum": 0}
numbers = EvaIterator(list(range(STEPS)), handle_sigterm=True)
restored = numbers.restore_dir()
if restored is not None:
    state = json.loads((restored / "state.json").read_text())

with Path(os.environ["EVA_JOB_DIR"], "steps.log").open("a") as log:
    for number in EvaIterator(range(state["next"], STEPS)):
        time.sleep(STEP_S)  # the work
        print(number, file=log, flush=True)
        state = {"next": number + 1, "sum": state["sum"] + number}
        if numbers.should_checkpoint():
            folder = numbers.checkpoint_dir()
            (folder / "state.json").write_text(json.dumps(state))
            numbers.checkpoint_done()

print("sum", state["sum"], "steps", numbers.steps)
