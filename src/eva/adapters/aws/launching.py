"""From an intent to an instance: one attempt after the other, each resolved before the next.

An attempt is resolved by its token: asked for again, EC2 answers with the same instance, or refuses
again. Where a refusal follows a reply that was lost, the refusal alone proves nothing (permission
and quota may be looked at before the token is), so the tags are looked at too, for as long as EC2
may take to show what it has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from eva.adapters.aws.book import Attempt, AttemptBook, Outcome
from eva.adapters.aws.failures import ApiError, Verdict
from eva.adapters.aws.instances import Instances
from eva.adapters.aws.offerings import Offering, Offerings
from eva.adapters.aws.request import run_instances
from eva.adapters.aws.settings import AwsSettings
from eva.adapters.aws.sightings import Sighting
from eva.model.ids import InstanceId
from eva.ports.cloud import CloudUnreachableError, LaunchIntent


class Launcher:
    """Callers see to it that there is one call per intent at a time."""

    def __init__(
        self,
        settings: AwsSettings,
        instances: Instances,
        book: AttemptBook,
        clock: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._instances = instances
        self._book = book
        self._clock = clock
        self._offerings = Offerings(settings.usable_zones, settings.set_aside_ms, clock)

    async def launch(self, intent: LaunchIntent) -> Sighting | None:
        """The new instance; None if the intent has one already, which the book then names."""
        if await self._settled(intent.instance) is not None:
            return None
        unresolved = self._book.last(intent.instance)
        if unresolved is not None and unresolved.outcome is Outcome.OPEN:
            shown = await self._try(intent, unresolved)
            if shown is not None:
                return shown
        for offering in self._offerings.of(intent):
            attempt = self._book.draft(
                intent.instance,
                offering.type,
                offering.zone,
                spot=offering.spot,
                now_ms=self._clock(),
            )
            shown = await self._try(intent, attempt)
            if shown is not None:
                return shown
        raise self._offerings.why_none(intent)

    async def resolve(self, instance: InstanceId) -> Attempt | None:
        """The attempt that got the instance, found without asking for one; None if none did."""
        return await self._settled(instance) or await self._seen(instance)

    # Resolving

    async def _settled(self, instance: InstanceId) -> Attempt | None:
        """What the book says; where it says nothing and may have been lost, what EC2 says."""
        last = self._book.last(instance)
        if last is not None:
            return last if last.outcome is Outcome.GOT else None
        if self._book.complete_from_ms == 0:
            return None
        return await self._adopt(instance)

    async def _adopt(self, instance: InstanceId) -> Attempt | None:
        """An instance that an earlier book knew of."""
        found = await self._instances.of(instance)
        if found:
            return self._record(instance, found[0])
        if self._clock() < self._book.complete_from_ms:
            raise CloudUnreachableError(
                f"whether {instance} was launched before is not known: the book of launches is "
                "new, and EC2 may not show everything yet. Ask again in a minute"
            )
        return None

    async def _seen(self, instance: InstanceId) -> Attempt | None:
        """The open attempt's instance, if EC2 shows it."""
        last = self._book.last(instance)
        found = await self._instances.of(instance)
        if found:
            return self._record(instance, found[0])
        if last is None or last.outcome is not Outcome.OPEN:
            return None
        self._give_up(last)
        return None

    def _record(self, instance: InstanceId, shown: Sighting) -> Attempt:
        last = self._book.last(instance)
        if last is None or last.outcome is not Outcome.OPEN:
            last = self._book.draft(
                instance, shown.type, shown.zone, spot=shown.spot, now_ms=self._clock()
            )
        found = replace(
            last,
            type=shown.type,
            zone=shown.zone,
            asked_ms=shown.launched_ms,
        )
        return self._book.got(found, shown.ref)

    def _give_up(self, attempt: Attempt) -> None:
        """Nothing came of it; too early to say that while EC2 may still not show it."""
        if attempt.asked_ms is not None:
            waited_ms = self._clock() - attempt.asked_ms
            if waited_ms < self._settings.settle_ms:
                self._book.unask(attempt)
                raise CloudUnreachableError(
                    f"whether attempt {attempt.number} for {attempt.instance} ({attempt.type} in "
                    f"{attempt.zone}) got an instance is not known yet: ask again in a minute"
                )
        self._book.refused(attempt)

    # Asking

    async def _try(self, intent: LaunchIntent, attempt: Attempt) -> Sighting | None:
        """The instance, or None if this attempt came to nothing and another may be made."""
        asked = run_instances(
            self._settings,
            self._instances.mark,
            intent,
            attempt.type,
            attempt.zone,
            attempt.number,
        )
        asking = self._book.ask(attempt, self._clock())
        try:
            shown = await self._instances.run(asked)
        except ApiError as error:
            return await self._failed(error, attempt)
        self._book.got(asking, shown.ref)
        return shown

    async def _failed(self, error: ApiError, before: Attempt) -> Sighting | None:
        if error.verdict is Verdict.UNKNOWN:
            raise error
        if error.verdict is Verdict.TOKEN_SPENT:
            return await self._spent(error, before)
        if error.verdict is Verdict.SLOWER:
            self._book.unask(before)
            raise error
        if error.verdict in {Verdict.NOT_HERE, Verdict.NOT_THIS_TYPE}:
            self._offerings.set_aside(Offering(before.type, before.zone, before.spot), error)
        if before.asked_ms is not None:
            found = await self._instances.of(before.instance)
            if found:
                self._record(before.instance, found[0])
                return found[0]
        self._give_up(before)
        if error.verdict in {Verdict.NOT_HERE, Verdict.NOT_THIS_TYPE}:
            return None
        raise error

    async def _spent(self, error: ApiError, before: Attempt) -> Sighting | None:
        """There was an instance under this token, asked for with another bootstrap."""
        found = await self._instances.of(before.instance)
        if found:
            self._record(before.instance, found[0])
            return found[0]
        if before.asked_ms is None:
            raise error
        self._give_up(before)
        return None
