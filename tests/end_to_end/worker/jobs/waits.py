"""Runs until a file is there, then ends. argv: file, exit code."""

import sys
import time
from pathlib import Path

while not Path(sys.argv[1]).exists():
    time.sleep(0.02)
sys.exit(int(sys.argv[2]))
