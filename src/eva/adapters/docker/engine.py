"""The door to the Docker engine. Nobody else connects to it.

The SDK blocks, so calls go to a few threads, and streams (logs, events) to one thread each. What
it raises is untyped text from three layers (SDK, daemon, OCI runtime); it becomes one of our errors
here, by a table, and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import AsyncGenerator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import docker
import docker.errors
import requests

from eva.model.errors import EvaError, InputError
from eva.ports.runtime import (
    DiskFullError,
    ImageNotFoundError,
    LaunchRefusedError,
    NoSuchDeviceError,
    RuntimeRefusedError,
    RuntimeUnreachableError,
)

T = TypeVar("T")

CALL_TIMEOUT_S = 120
THREADS = 16
STREAM_AHEAD = 256  # items that a stream may be ahead of its reader

# First match wins. Daemon and OCI runtime versions differ in wording; each pattern holds what the
# versions from 20.10 on have in common.
MEANINGS: tuple[tuple[str, type[EvaError], str], ...] = (
    (r"no space left on device", DiskFullError, "free space below Docker's root folder"),
    (
        (
            r"could not select device driver|unknown device|device error|no such device"
            r"|requested cpus are not available"
        ),
        NoSuchDeviceError,
        "check `nvidia-smi -L`, the NVIDIA container toolkit and the worker's CPUs",
    ),
    (
        (
            r"connection refused|no such host|i/o timeout|tls handshake|network is unreachable"
            r"|deadline exceeded|toomanyrequests|server misbehaving|connection reset"
            r"|temporary failure in name resolution"
        ),
        RuntimeUnreachableError,
        "check the registry and this machine's network, then ask again",
    ),
    (
        (
            r"no such image|manifest unknown|manifest for .* not found|pull access denied"
            r"|repository does not exist|invalid reference format|invalid checksum digest"
            r"|name unknown"
        ),
        ImageNotFoundError,
        "check the name and tag, and that this machine may pull it",
    ),
    (
        (
            r"bind source path does not exist|invalid mount|invalid volume|duplicate mount point"
            r"|unable to find user|unable to find group|working directory .* invalid"
            r"|no command specified|invalid environment|invalid containerport|minimum memory limit"
        ),
        LaunchRefusedError,
        "correct the job file, or the worker's mounts",
    ),
)


class NotFoundError(EvaError):
    """The engine does not know the thing; callers say what that means."""


class ConflictError(EvaError):
    """The thing exists, or is in a state that forbids the call."""


def typed(error: Exception, what: str) -> EvaError:
    """Our error for what the SDK raised while doing `what`."""
    if not isinstance(error, docker.errors.APIError):
        return RuntimeUnreachableError(
            f"{what}: Docker does not answer ({error}). Is it running, and may this user use it? "
            f"Try `docker info`"
        )
    said = str(error.explanation or error)
    meaning = meaning_of(said, what)
    if meaning is not None:
        return meaning
    if error.status_code == 404:
        return NotFoundError(f"{what}: {said}")
    if error.status_code in {304, 409}:
        return ConflictError(f"{what}: {said}")
    return RuntimeRefusedError(
        f"{what}: Docker said {said!r}. See its log (`journalctl -u docker`)"
    )


def meaning_of(said: str, what: str) -> EvaError | None:
    """The typed error that a message of the engine stands for, if it is in the table."""
    for pattern, kind, remedy in MEANINGS:
        if re.search(pattern, said, re.IGNORECASE):
            if issubclass(kind, InputError):
                return kind.single(what, f"{said}; {remedy}")
            return kind(f"{what}: {said}; {remedy}")
    return None


class Engine:
    """One connection to an engine: the environment's (`DOCKER_HOST`) or the local socket."""

    def __init__(self, url: str | None = None) -> None:
        self._url = url
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="docker")
        self._lock = threading.Lock()
        self._api: Any = None

    def api(self) -> Any:
        """The low-level client, connected on first use, so that a worker can start before it."""
        with self._lock:
            if self._api is None:
                settings = {"base_url": self._url} if self._url else docker.utils.kwargs_from_env()
                self._api = docker.APIClient(version="auto", timeout=CALL_TIMEOUT_S, **settings)
            return self._api

    async def call(self, what: str, job: Callable[[Any], T]) -> T:
        """`job(api)` in a thread; its errors become ours, opened by `what`."""
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, self.call_here, what, job
        )

    def call_here(self, what: str, job: Callable[[Any], T]) -> T:
        """The same in this thread."""
        try:
            return job(self.api())
        except (docker.errors.DockerException, requests.RequestException) as error:
            raise typed(error, what) from error

    async def stream(self, what: str, begin: Callable[[Any], Iterable[T]]) -> AsyncGenerator[T]:
        """The items of a blocking stream. Leaving the iterator closes the connection."""
        pump = _Pump(asyncio.get_running_loop())
        thread = threading.Thread(
            target=pump.run,
            args=(lambda: self.call_here(what, begin), what),
            name=f"docker {what}",
            daemon=True,
        )
        thread.start()
        try:
            while True:
                item = await pump.next()
                if isinstance(item, _End):
                    if item.error is not None:
                        raise item.error
                    return
                yield item
        finally:
            pump.close()

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._api is not None:
            self._api.close()


class _End:
    """The last item of a stream."""

    def __init__(self, error: EvaError | None = None) -> None:
        self.error = error


class _Pump:
    """Carries items from a thread that blocks to a loop that must not."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._items: asyncio.Queue[Any] = asyncio.Queue()
        self._room = threading.Semaphore(STREAM_AHEAD)
        self._closed = threading.Event()
        self._stream: Any = None

    async def next(self) -> Any:
        item = await self._items.get()
        self._room.release()
        return item

    def run(self, begin: Callable[[], Iterable[Any]], what: str) -> None:
        end = _End()
        try:
            self._stream = begin()
            if self._closed.is_set():
                self._stream.close()
            for item in self._stream:
                # To the end even when nobody listens any more, which is near once the connection
                # is shut: only there does the SDK let go of it.
                if not self._closed.is_set():
                    self._room.acquire()
                    self._put(item)
        except EvaError as error:
            end = _End(error)
        except (docker.errors.DockerException, requests.RequestException, OSError) as error:
            end = _End(typed(error, what))
        except ValueError:  # what http.client says of a file that was closed under it
            end = _End()
        self._put(end)

    def _put(self, item: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody is left to tell
            self._loop.call_soon_threadsafe(self._items.put_nowait, item)

    def close(self) -> None:
        self._closed.set()
        self._room.release()
        if self._stream is not None:
            with contextlib.suppress(OSError, AttributeError):  # it was closed already
                self._stream.close()
