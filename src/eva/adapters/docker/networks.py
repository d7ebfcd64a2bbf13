"""Networks of gangs: made when the first task needs one, gone with the last.

An overlay where the engine is part of a swarm, and so reaches across instances; a bridge otherwise,
which suffices for gangs on one machine.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from eva.adapters.docker.containers import CLUSTER, NETWORK
from eva.adapters.docker.engine import ConflictError, Engine, NotFoundError
from eva.ports.runtime import RuntimeRefusedError


class Networks:
    def __init__(self, engine: Engine, cluster: str) -> None:
        self._engine = engine
        self._cluster = cluster
        self._lock = asyncio.Lock()

    async def have(self, name: str) -> None:
        async with self._lock:
            try:
                await self._engine.call(f"network {name}", lambda api: api.inspect_network(name))
            except NotFoundError:
                await self._make(name)

    async def _make(self, name: str) -> None:
        def make(api: Any) -> None:
            swarm = api.info().get("Swarm", {}).get("LocalNodeState") == "active"
            api.create_network(
                name,
                driver="overlay" if swarm else "bridge",
                attachable=swarm or None,
                check_duplicate=True,
                labels={CLUSTER: self._cluster},
            )

        with contextlib.suppress(ConflictError):  # another worker on this engine was first
            await self._engine.call(f"network {name}", make)

    async def drop_if_unused(self, name: str) -> None:
        """Remove it once no container names it. Who finds it missing makes it again."""

        def drop(api: Any) -> None:
            if not api.containers(all=True, filters={"label": f"{NETWORK}={name}"}):
                api.remove_network(name)

        async with self._lock:
            # Refused while somebody is attached, who will then be the one to drop it.
            with contextlib.suppress(NotFoundError, ConflictError, RuntimeRefusedError):
                await self._engine.call(f"network {name}", drop)
