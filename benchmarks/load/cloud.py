"""The cloud of the load: its instances are workers of the crowd, which is another process.

It remembers what it rented as the cloud for tests does, and passes on what has an effect: who is to
come up, with which bootstrap, and who is to end.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.load.wire import Line
from eva.adapters.fake.cloud import FakeCloud
from eva.model.catalog import InstanceDelays
from eva.model.ids import InstanceId
from eva.ports.cloud import CloudInstance, LaunchIntent

_NO_DELAYS = InstanceDelays(0, 0, 0, 0)  # the crowd takes its time by itself


class CrowdCloud(FakeCloud):
    name = "crowd"

    def __init__(self, clock: Callable[[], int], socket: Path) -> None:
        super().__init__(clock, _NO_DELAYS)
        self._crowd = Line(socket)

    async def launch(self, intent: LaunchIntent) -> CloudInstance:
        await self._crowd.ask(
            do="launch", bootstrap=intent.bootstrap, capacity=list(intent.type.capacity)
        )
        return await super().launch(intent)

    async def terminate(self, instance: InstanceId) -> CloudInstance:
        """Told to be over only when the worker is: the list is proof."""
        await self._crowd.ask(do="terminate", instance=instance)
        return await super().terminate(instance)

    async def close(self) -> None:
        await self._crowd.close()
