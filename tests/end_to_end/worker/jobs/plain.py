"""Prints what it is told to, one line every 20 ms; argv: exit code, then lines.

A line "env NAME" prints a variable, "forever" goes on printing steps, "saves" writes a checkpoint
on SIGTERM and leaves with code 85, "stubborn" ignores SIGTERM.
"""

import itertools
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from eva_iterator.manifest import write_manifest


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def save(_number: int, _frame: FrameType | None) -> None:
    folder = Path(os.environ["EVA_CHECKPOINT_DIR"]) / "saved"
    folder.mkdir()
    (folder / "state").write_text("saved")
    write_manifest(folder, step=7)
    sys.exit(85)


for line in sys.argv[2:]:
    if line.startswith("env "):
        say(f"{line[4:]} = {os.environ.get(line[4:], '')}")
    elif line == "saves":
        signal.signal(signal.SIGTERM, save)
        say("ready")
    elif line == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say("ready")
    elif line == "forever":
        for step in itertools.count(1):
            say(f"step {step}")
            time.sleep(0.02)
    else:
        say(line)
        time.sleep(0.02)
sys.exit(int(sys.argv[1]))
