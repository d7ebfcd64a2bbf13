"""Instances at EC2: the few calls about them, each with one meaning.

This is all of EC2 that the launcher, the port and the reaper see.
"""

from __future__ import annotations

from typing import Any

from eva.adapters.aws.connection import Connection
from eva.adapters.aws.failures import ApiError, Verdict
from eva.adapters.aws.names import Mark
from eva.adapters.aws.pacing import Urgency
from eva.adapters.aws.sightings import Sighting, sightings
from eva.model.ids import InstanceId


class Instances:
    def __init__(self, mark: Mark, connection: Connection) -> None:
        self.mark = mark
        self._connection = connection

    async def run(self, asked: dict[str, Any]) -> Sighting:
        reply = await self._connection.call(Urgency.LAUNCH, "run_instances", **asked)
        return sightings([reply], self.mark.journal)[0]

    async def all(self) -> list[Sighting]:
        """Everything that bears our cluster's tag."""
        return await self._find(Filters=self.mark.filters())

    async def of(self, instance: InstanceId) -> list[Sighting]:
        return await self._find(Filters=self.mark.filters(instance))

    async def by_ref(self, ref: str) -> Sighting | None:
        """None if EC2 does not show it: not yet, or not any more."""
        try:
            found = await self._find(InstanceIds=[ref])
        except ApiError as error:
            if error.verdict is not Verdict.NOT_FOUND:
                raise
            return None
        return found[0] if found else None

    async def terminate(self, ref: str) -> bool:
        """Whether EC2 knows of it."""
        try:
            await self._connection.call(Urgency.TERMINATE, "terminate_instances", InstanceIds=[ref])
        except ApiError as error:
            if error.verdict is not Verdict.NOT_FOUND:
                raise
            return False
        return True

    async def may_call(self) -> None:
        """Raise unless EC2 can be reached and shows us instances."""
        await self._connection.call(
            Urgency.LOOK, "describe_instances", Filters=self.mark.filters(), MaxResults=5
        )

    async def close(self) -> None:
        await self._connection.close()

    async def _find(self, **asked: object) -> list[Sighting]:
        found = await self._connection.pages(
            Urgency.LOOK, "describe_instances", "Reservations", **asked
        )
        return sightings(found, self.mark.journal)
