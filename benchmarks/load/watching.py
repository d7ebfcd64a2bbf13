"""Memory and processor time of the master and of its planning processes, from /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """`peak_bytes` is the most memory that was ever resident; `cpu_s` all processor time so far."""

    peak_bytes: int
    cpu_s: float


def usage(pid: int) -> Usage:
    """Of one process; nothing if it is not there."""
    try:
        status = (Path("/proc") / str(pid) / "status").read_text()
        fields = _stat(pid)
    except OSError:
        return Usage(0, 0.0)
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return Usage(int(peak.split()[1]) * _KIB, (int(fields[11]) + int(fields[12])) / _TICKS)


def of_children(pid: int) -> Usage:
    """Of all child processes together."""
    each = [usage(child) for child in _children(pid)]
    return Usage(sum(u.peak_bytes for u in each), sum(u.cpu_s for u in each))


def _children(pid: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                parent = int(_stat(int(folder.name))[1])
            except OSError:
                continue  # it ended while we looked
            if parent == pid:
                found.append(int(folder.name))
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat that follow the name, which may hold anything."""
    content = (Path("/proc") / str(pid) / "stat").read_text()
    return content.rpartition(")")[2].split()
