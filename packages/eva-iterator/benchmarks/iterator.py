"""What a step costs: a bare loop, a loop over EvaIterator outside Eva, and one that reports.

    python benchmarks/iterator.py [STEPS]

Prints nanoseconds per step. Each figure is the best of many short runs of STEPS steps, because
everything that disturbs a run makes it slower, never faster, and a short run may go undisturbed.
"""

from __future__ import annotations

import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Callable

from eva_iterator.environment import Environment
from eva_iterator.iterator import EvaIterator
from eva_iterator.task import Task

ROUNDS = 40


def bare(steps: int) -> None:
    for _ in range(steps):
        pass


def looping(task: Task) -> Callable[[int], None]:
    def loop(steps: int) -> None:
        for _ in EvaIterator(range(steps), task=task):
            pass

    return loop


def asking(task: Task) -> Callable[[int], None]:
    def loop(steps: int) -> None:
        iterator = EvaIterator(range(steps), task=task)
        for _ in iterator:
            iterator.should_checkpoint()

    return loop


def best_ns(loop: Callable[[int], None], steps: int) -> float:
    def once() -> int:
        begin_ns = time.perf_counter_ns()
        loop(steps)
        return time.perf_counter_ns() - begin_ns

    return min(once() for _ in range(ROUNDS)) / steps


def measure(steps: int) -> dict[str, float]:
    """Nanoseconds per step of each kind of loop."""
    outside = Task(Environment.read({}))
    results = {
        "bare loop": best_ns(bare, steps),
        "EvaIterator outside Eva": best_ns(looping(outside), steps),
        "EvaIterator outside Eva, asking should_checkpoint()": best_ns(asking(outside), steps),
    }
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        path = Path(folder) / "eva.sock"
        listener.bind(str(path))
        listener.listen()
        reader = threading.Thread(target=_read_all, args=(listener,), daemon=True)
        reader.start()
        inside = Task(Environment.read({"EVA_SOCKET": str(path), "EVA_CHECKPOINT_DIR": folder}))
        results["EvaIterator reporting"] = best_ns(looping(inside), steps)
        results["EvaIterator reporting, asking should_checkpoint()"] = best_ns(
            asking(inside), steps
        )
        inside.close()
        reader.join()
    return results


def _read_all(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        while connection.recv(65536):
            pass


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    for name, cost_ns in measure(steps).items():
        print(f"{cost_ns:8.1f} ns/step  {name}")


if __name__ == "__main__":
    main()
