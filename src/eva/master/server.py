"""`eva serve`: a master on this machine, from its options to its end.

Everything listens on loopback unless a certificate and key are given; a token is asked for in any
case. The workers' ports are remembered in the home folder, for workers come back to where they
were told. The cluster's full name is drawn once per journal, so that two clusters that share a
machine or a storage never take each other's tasks for their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import resource
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import structlog
import uvicorn

from eva.adapters.grpc.link import LinkTimings
from eva.adapters.grpc.server import GrpcWorkers, Listening
from eva.adapters.identity.authority import Authority
from eva.adapters.local.cloud import LocalCloud, LocalDelays
from eva.adapters.stores import open_journal, open_storage
from eva.inputs import catalogs
from eva.master.api import make_api
from eva.master.client import Connection
from eva.master.clock import SteadyClock, wall_ms
from eva.master.options import ServeOptions, with_delays_scaled
from eva.master.service import Master, Surroundings, take_lease
from eva.master.settings import MasterSettings
from eva.model.errors import EvaError, OperatorError
from eva.model.units import MS_PER_SECOND
from eva.ports.journal import Fact, Journal, Lease

PID_FILE = "master.pid"
_PORTS_FILE = "ports.json"
_CLUSTER_FACT = "cluster"
_LOCAL_TOKEN = "local"  # noqa: S105  the name of a token, not one
_OPEN_FILES = 65_536
_SHORTEST_SILENCE_MS = 10 * MS_PER_SECOND

Surround = Callable[[ServeOptions, Journal, Authority], Surroundings]

_log = structlog.get_logger("eva.master")


async def serve(options: ServeOptions, surround: Surround | None = None) -> None:
    """Until a signal, a user or a failure ends it.

    `surround` decides what the master works with; `surroundings`, where nothing else is said.
    """
    options.check()
    _allow_many_connections()
    home = options.home
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.closing(_listen(options.host, options.port)) as listening:
        journal = await asyncio.to_thread(open_journal, options.store, home)
        try:
            await _serve(options, journal, listening, surround or surroundings)
        finally:
            await asyncio.to_thread(journal.close)


async def _serve(
    options: ServeOptions, journal: Journal, listening: socket.socket, surround: Surround
) -> None:
    settings = _settings(options)
    owner = f"{socket.gethostname()}:{os.getpid()}"
    lease = await take_lease(journal, owner, settings.lease_ttl_ms)
    authority = await asyncio.to_thread(_authority, options, journal, lease)
    around = await asyncio.to_thread(surround, options, journal, authority)
    master = await Master.start(settings, around, lease, SteadyClock())
    pid_file = options.home / PID_FILE
    pid_file.write_text(str(os.getpid()))
    try:
        url = _url(options, listening)
        await asyncio.to_thread(_save_connection, master, options, url)
        await _answer(master, options, listening)
    finally:
        pid_file.unlink(missing_ok=True)
        await master.stop()
        authority.close()


def _allow_many_connections() -> None:
    """One per worker, and more: the usual limit of 1,024 open files would refuse them."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if most == resource.RLIM_INFINITY else min(_OPEN_FILES, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _settings(options: ServeOptions) -> MasterSettings:
    round_ms = round(options.round_s * MS_PER_SECOND)
    return MasterSettings(
        cluster=options.cluster,
        policy=options.policy,
        round_ms=round_ms,
        poll_ms=min(round_ms, 500),
        settle_ms=5 * MS_PER_SECOND,
        unreachable_ms=60 * MS_PER_SECOND,
        containers=options.runtime == "docker",
    )


def _authority(options: ServeOptions, journal: Journal, lease: Lease) -> Authority:
    """Who workers trust, one per journal."""
    fact = journal.fact(_CLUSTER_FACT)
    if fact is None:
        name = f"{options.cluster}-{secrets.token_hex(4)}"
        fact = Fact(_CLUSTER_FACT, name.encode(), wall_ms())
        journal.put_fact(lease, fact)
    cluster = fact.value.decode()
    folder = options.home / "identity" / cluster
    return Authority(folder, cluster, [options.host], wall_ms())


def surroundings(options: ServeOptions, journal: Journal, authority: Authority) -> Surroundings:
    """The local cloud, and workers over gRPC."""
    home = options.home.resolve()
    storage = options.storage or str(home / "storage")
    opened = open_storage(storage)
    opened.check()
    port, join_port = _worker_ports(home, options.host)
    where = Listening(options.host, port, join_port, options.host, storage, options.runtime)
    heartbeat_ms = round(options.heartbeat_s * MS_PER_SECOND)
    timings = LinkTimings(
        heartbeat_ms=heartbeat_ms,
        silence_ms=max(_SHORTEST_SILENCE_MS, 4 * heartbeat_ms),
        dead_man_ms=round(options.dead_man_s * MS_PER_SECOND),
    )
    return Surroundings(
        catalog=with_delays_scaled(catalogs.load(options.catalog), options.delay_scale),
        journal=journal,
        cloud=LocalCloud(home / "instances" / authority.cluster, wall_ms, LocalDelays(scale=1.0)),
        workers=GrpcWorkers(authority, wall_ms, where, timings),
        storage=opened,
        home=home,
    )


def _worker_ports(home: Path, host: str) -> tuple[int, int]:
    """Two ports for workers, the same after every restart."""
    path = home / _PORTS_FILE
    if path.exists():
        port, join_port = json.loads(path.read_text())
        return port, join_port
    with _listen(host, 0) as first, _listen(host, 0) as second:
        ports = (first.getsockname()[1], second.getsockname()[1])
    path.write_text(json.dumps(ports))
    return ports


def _listen(host: str, port: int) -> socket.socket:
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


def _url(options: ServeOptions, listening: socket.socket) -> str:
    scheme = "http" if options.tls_certificate is None else "https"
    host = f"[{options.host}]" if ":" in options.host else options.host
    return f"{scheme}://{host}:{listening.getsockname()[1]}"


def _save_connection(master: Master, options: ServeOptions, url: str) -> None:
    """So that commands under the same home find this master and are let in."""
    token = ""
    with contextlib.suppress(EvaError):
        token = Connection.read(options.home).token
    if not master.tokens.knows(token):
        if any(name == _LOCAL_TOKEN for name, _ in master.tokens.names()):
            master.tokens.revoke(_LOCAL_TOKEN)
        token = master.tokens.make(_LOCAL_TOKEN)
    certificate = options.tls_certificate
    Connection(url, token, None if certificate is None else str(certificate)).write(options.home)


class _Http(uvicorn.Server):
    """Signals are ours to answer, not the HTTP server's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _answer(master: Master, options: ServeOptions, listening: socket.socket) -> None:
    """Serve users until somebody or something ends it."""
    end = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end.set)
    winding_up: list[asyncio.Task[None]] = []

    async def shut_down(*, cancel_jobs: bool) -> None:
        if cancel_jobs:
            await master.wind_up()
        end.set()

    def on_shutdown(cancel_jobs: bool) -> None:  # noqa: FBT001  the API's callback
        winding_up.append(asyncio.create_task(shut_down(cancel_jobs=cancel_jobs)))

    http = _Http(
        uvicorn.Config(
            make_api(master, on_shutdown),
            log_level="warning",
            lifespan="off",
            timeout_graceful_shutdown=2,
            ssl_certfile=options.tls_certificate,
            ssl_keyfile=options.tls_key,
        )
    )
    answering: asyncio.Task[object] = asyncio.create_task(http.serve(sockets=[listening]))
    failing: asyncio.Task[object] = asyncio.create_task(master.until_failure())
    ending: asyncio.Task[object] = asyncio.create_task(end.wait())
    done, _ = await asyncio.wait({answering, failing, ending}, return_when=asyncio.FIRST_COMPLETED)
    http.should_exit = True
    ending.cancel()
    for task in (*winding_up, failing):
        if task not in done:
            task.cancel()
    await asyncio.wait({answering})
    for task in done:
        task.result()
