"""A process to be killed: appends from several threads and says what was acknowledged.

Run as `python -m tests.support.journal_writer FILE OWNER`. Each line on stdout is
`seq text`, printed only after the append returned.
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from eva.adapters.sqlite import open_journal
from eva.ports.journal import Entry, Journal, Lease

THREADS = 4
_saying = threading.Lock()  # or lines of two threads may run into each other


def write_for_ever(journal: Journal, lease: Lease, name: str) -> None:
    number = 0
    while True:
        # Batches of different sizes, some of them larger than a page of the database.
        batch = [
            Entry(number, "said", f"{name}-{number}-{part}".encode() + b"." * (number % 7 * 900))
            for part in range(1 + number % 3)
        ]
        appended = journal.append(lease, batch)
        lines = [
            f"{seq} {entry.payload.decode()}\n"
            for seq, entry in zip(appended.seqs, batch, strict=True)
        ]
        with _saying:
            sys.stdout.write("".join(lines))
            sys.stdout.flush()
        number += 1


def main() -> None:
    journal = open_journal(Path(sys.argv[1]))
    lease = journal.acquire(sys.argv[2], ttl_ms=600_000)
    sys.stdout.write("0 holding\n")
    sys.stdout.flush()
    with ThreadPoolExecutor(THREADS) as pool:
        for index in range(THREADS):
            pool.submit(write_for_ever, journal, lease, f"{lease.token}.{index}")


if __name__ == "__main__":
    main()
