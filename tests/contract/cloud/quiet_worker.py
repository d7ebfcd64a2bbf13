"""Stands in for a worker: runs until it is killed, with a child in a group of its own.

Both can be found by their command lines. With --sweep it ends at once, having kept no tasks; the
child, which stands for what a worker starts besides tasks, is the host's to kill.
"""

import subprocess
import sys
import time

if "--sweep" not in sys.argv:
    state = sys.argv[sys.argv.index("--state") + 1]
    with subprocess.Popen(
        [sys.executable, "-S", "-c", "import time; time.sleep(600)", f"child-of-{state}"]
    ):
        time.sleep(600)
