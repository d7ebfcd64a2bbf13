"""How much a request may say: counted while it comes in, before anybody asks who sent it.

The framework reads a body whole before it looks at the token, so that without a bound anybody who
reaches the port could fill the master's memory. Working folders, which are large, are read piece by
piece after the token, and have a bound of their own.
"""

from __future__ import annotations

from collections.abc import Collection

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY_BYTES = 4 * 1024 * 1024  # the longest job file and its secrets, however they are escaped
TOO_LARGE = 413


class BoundedBodies:
    """Around the API; `unbounded` are the paths whose handlers count for themselves."""

    def __init__(self, app: ASGIApp, unbounded: Collection[str]) -> None:
        self._app = app
        self._unbounded = unbounded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self._unbounded:
            await self._app(scope, receive, send)
            return
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > MOST_BODY_BYTES:
                raise HTTPException(
                    TOO_LARGE, f"the body is larger than {MOST_BODY_BYTES >> 20} MiB"
                )
            return message

        await self._app(scope, counted, send)
