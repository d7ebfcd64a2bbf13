"""Calls to AWS: in threads, paced, and with failures judged.

botocore's own retries are off. It would repeat calls whose replies were lost without anybody
knowing, and at a pace that nobody here has a say in.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from eva.adapters.aws.failures import ApiError, Verdict, judged, raised_by_boto
from eva.adapters.aws.pacing import Pacer, Urgency
from eva.model.errors import OperatorError

_TIMES = 4  # that a throttled call is made before its caller hears of it
_THREADS = 8
_CONNECT_S, _READ_S = 5, 30


def steady_ms() -> int:
    """For pacing alone: calls must not wait for a wall clock that was set back."""
    return time.monotonic_ns() // 1_000_000


def boto_session() -> Any:
    """boto3 as its own files and the environment set it up; slow to load, so only when needed."""
    try:
        boto3 = importlib.import_module("boto3")
    except ImportError as error:
        raise OperatorError(
            "renting from AWS needs boto3: pip install 'eva-scheduler[aws]'"
        ) from error
    try:
        return boto3.session.Session()
    except raised_by_boto() as error:
        raise judged(error).typed("reading the settings of AWS") from error


def boto_client(
    service: str, region: str, endpoint: str | None = None, read_s: float = _READ_S
) -> Any:
    """A client of boto3, with credentials from where boto3 takes them."""
    session = boto_session()
    config = importlib.import_module("botocore.config").Config(
        retries={"total_max_attempts": 1},
        connect_timeout=_CONNECT_S,
        read_timeout=read_s,
        max_pool_connections=_THREADS,
        user_agent_extra="eva-scheduler",
        # Emulators know no host names of buckets.
        s3={"addressing_style": "path" if endpoint else "auto"},
    )
    try:
        return session.client(service, region_name=region, endpoint_url=endpoint, config=config)
    except raised_by_boto() as error:
        raise judged(error).typed(f"connecting to {service} in {region}") from error


class Connection:
    """One service of AWS. `connect` makes the client, in a thread, when the first call is made."""

    def __init__(self, connect: Callable[[], Any], pacer: Pacer) -> None:
        self._connect = connect
        self._pacer = pacer
        self._client: Any = None
        self._connecting = asyncio.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="eva-aws")

    async def call(self, urgency: Urgency, operation: str, **asked: object) -> Mapping[str, Any]:
        """The reply, or an ApiError. A call that was throttled is made again, more slowly."""
        for _ in range(_TIMES - 1):
            try:
                return await self._once(urgency, operation, asked)
            except ApiError as error:
                if error.verdict is not Verdict.SLOWER:
                    raise
        return await self._once(urgency, operation, asked)

    async def pages(
        self, urgency: Urgency, operation: str, key: str, **asked: object
    ) -> list[Mapping[str, Any]]:
        """Everything under `key`, over all pages."""
        found: list[Mapping[str, Any]] = []
        more: dict[str, object] = {}
        while True:
            reply = await self.call(urgency, operation, **asked, **more)
            found.extend(reply.get(key, ()))
            if not reply.get("NextToken"):
                return found
            more = {"NextToken": reply["NextToken"]}

    async def close(self) -> None:
        await self._pacer.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._client is not None:
            self._client.close()

    async def _once(
        self, urgency: Urgency, operation: str, asked: Mapping[str, object]
    ) -> Mapping[str, Any]:
        await self._pacer.turn(urgency)
        client = await self._connected()
        try:
            reply: Mapping[str, Any] = await self._in_thread(
                partial(getattr(client, operation), **asked)
            )
        except raised_by_boto() as error:
            failed = judged(error)
            if failed.verdict is Verdict.SLOWER:
                self._pacer.refused()
            raise failed from error
        self._pacer.accepted()
        return reply

    async def _connected(self) -> Any:
        async with self._connecting:
            if self._client is None:
                self._client = await self._in_thread(self._connect)
        return self._client

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
