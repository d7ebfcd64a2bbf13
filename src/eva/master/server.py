"""`eva serve`: a master on this machine, from its options to its end.

The HTTP API listens on loopback unless a certificate and key are given; a token is asked for in any
case. Workers' ports speak TLS both ways. The cluster's full name is drawn once per journal, so that
two clusters that share a machine or a storage never take each other's tasks for their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import secrets
import signal
import socket
from collections.abc import Callable, Iterator

import structlog
import uvicorn

from eva.adapters.identity.authority import Authority
from eva.adapters.stores import open_journal
from eva.master.api import make_api
from eva.master.client import Connection
from eva.master.clock import SteadyClock, wall_ms
from eva.master.clouds import master_settings, surroundings
from eva.master.home import make_home
from eva.master.intents import CLUSTER_FACT
from eva.master.listening import listen
from eva.master.options import ServeOptions
from eva.master.secrets import KEY_FILE
from eva.master.service import Master, Surroundings, take_lease
from eva.model.errors import EvaError, OperatorError, TryAgainError
from eva.ports.cloud import Cloud
from eva.ports.journal import Fact, Journal, Lease

PID_FILE = "master.pid"
_LOCAL_TOKEN = "local"  # noqa: S105  the name of a token, not one
_OPEN_FILES = 65_536

Surround = Callable[[ServeOptions, Journal, Authority], Surroundings]

_log = structlog.get_logger("eva.master")


async def serve(options: ServeOptions, surround: Surround | None = None) -> None:
    """Until a signal, a user or a failure ends it.

    `surround` decides what the master works with; `surroundings`, where nothing else is said.
    """
    options.check()
    _allow_many_connections()
    home = options.home
    make_home(home)
    with contextlib.closing(listen(options.host, options.port)) as listening:
        journal = await asyncio.to_thread(open_journal, options.store, home)
        try:
            await _serve(options, journal, listening, surround or surroundings)
        finally:
            await asyncio.to_thread(journal.close)


async def _serve(
    options: ServeOptions, journal: Journal, listening: socket.socket, surround: Surround
) -> None:
    settings = master_settings(options)
    owner = f"{socket.gethostname()}:{os.getpid()}"
    lease = await take_lease(journal, owner, settings.lease_ttl_ms)
    authority = await asyncio.to_thread(_authority, options, journal, lease)
    around = await asyncio.to_thread(surround, options, journal, authority)
    await _usable(around.cloud)
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


async def _usable(cloud: Cloud) -> None:
    """What somebody has to mend ends the start; what may pass by itself does not."""
    try:
        await cloud.check()
    except TryAgainError as error:
        _log.warning("the cloud does not answer", cloud=cloud.name, reason=str(error))


def _allow_many_connections() -> None:
    """One per worker, and more: the usual limit of 1,024 open files would refuse them."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if most == resource.RLIM_INFINITY else min(_OPEN_FILES, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _authority(options: ServeOptions, journal: Journal, lease: Lease) -> Authority:
    """Who workers trust, one per journal."""
    fact = journal.fact(CLUSTER_FACT)
    if fact is None:
        name = f"{options.cluster}-{secrets.token_hex(4)}"
        fact = Fact(CLUSTER_FACT, name.encode(), wall_ms())
        (options.home / "identity" / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        journal.put_fact(lease, fact)
    cluster = fact.value.decode()
    folder = options.home / "identity" / cluster
    if not folder.exists():
        raise OperatorError(
            f"the journal is of the cluster {cluster}, and {folder} is not here: copy `identity`, "
            f"`{KEY_FILE}` and `ports.json` from the home of the master that kept them. One with "
            "another identity turns that cluster's workers away; if theirs is lost for good, make "
            "the folder, empty, and their instances will be replaced"
        )
    return Authority(folder, cluster, sorted({options.host, options.filled.advertise}), wall_ms())


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
