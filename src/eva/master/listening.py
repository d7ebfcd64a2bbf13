"""Where a master listens, and where others find it.

Workers come back to where they were told, so their two ports are remembered in the home folder.
"""

from __future__ import annotations

import errno
import json
import socket
from pathlib import Path

from eva.model.errors import OperatorError

_PORTS_FILE = "ports.json"
_ELSEWHERE = ("192.0.2.1", 9)  # an address that nobody has; nothing is ever sent there


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        used = error.errno == errno.EADDRINUSE
        remedy = (
            "another program has it: stop that one (is a master running already? see `eva doctor`),"
            " or choose another with --port"
            if used
            else "choose another with --host and --port"
        )
        raise OperatorError(
            f"cannot listen on {host}:{port} ({error.strerror}): {remedy}"
        ) from error
    return listening


def worker_ports(home: Path, host: str) -> tuple[int, int]:
    """Two ports for workers, the same after every restart."""
    path = home / _PORTS_FILE
    if path.exists():
        port, join_port = json.loads(path.read_text())
        return port, join_port
    with listen(host, 0) as first, listen(host, 0) as second:
        ports = (first.getsockname()[1], second.getsockname()[1])
    path.write_text(json.dumps(ports))
    return ports


def own_address() -> str:
    """The address of this machine on its way out, found without sending anything."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
        except OSError:
            return "127.0.0.1"  # no network at all
        return str(probe.getsockname()[0])
