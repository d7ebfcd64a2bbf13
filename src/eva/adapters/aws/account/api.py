"""Calls to an account's services, one after the other, with failures told as what they were for.

A throttled call is made again more slowly. So is one that only looks and got no answer. A change
that got no answer is not: nobody knows whether it happened, and running the whole again finds out.
What was made a moment ago may not be known everywhere yet, so changes to it wait for a little.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from eva.adapters.aws.connection import boto_client
from eva.adapters.aws.failures import ApiError, Verdict, judged, raised_by_boto

Asked = Mapping[str, Any]
_TIMES = 6
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 8.0
_NOT_YET = frozenset(
    {"InvalidGroup.NotFound", "NoSuchBucket", "NoSuchEntity", "OperationAborted"}
    | {"ConcurrentModification", "ConditionalRequestConflict", "DeleteConflict"}
)


class Api:
    """Of one region. Clients are made when they are first needed."""

    def __init__(
        self, region: str, endpoint: str | None = None, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self.region, self.endpoint = region, endpoint
        self.pause = pause
        self._chance = random.SystemRandom()
        self._clients: dict[str, Any] = {}
        self._doing = ""

    def at(self, region: str) -> Api:
        """The same in a region, which may be this one."""
        return self if region == self.region else Api(region, self.endpoint, self.pause)

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Failures inside say that they happened while doing this."""
        before, self._doing = self._doing, what
        try:
            yield
        finally:
            self._doing = before

    def look(self, service: str, operation: str, **asked: object) -> Asked:
        return self._answered(service, operation, lambda call: call(**asked), _may_look_again)

    def find(
        self, service: str, operation: str, absent: Collection[str], **asked: object
    ) -> Asked | None:
        """None if the answer is one of the codes `absent`."""
        reply = self._tried(service, operation, asked, _may_look_again, absent)
        return None if isinstance(reply, str) else reply

    def refusal(
        self, service: str, operation: str, codes: Collection[str], **asked: object
    ) -> str | None:
        """The one of `codes` that the call was refused with; None if it was not."""
        reply = self._tried(service, operation, asked, _may_look_again, codes)
        return reply if isinstance(reply, str) else None

    def pages(self, service: str, operation: str, key: str, **asked: object) -> list[Any]:
        """Everything under `key`, over all pages."""

        def listed(_: Any) -> dict[str, list[Any]]:
            pages = self.client(service).get_paginator(operation).paginate(**asked)
            return {key: [each for page in pages for each in page.get(key, ())]}

        found: list[Any] = self._answered(service, operation, listed, _may_look_again)[key]
        return found

    def change(self, service: str, operation: str, **asked: object) -> Asked:
        return self._answered(service, operation, lambda call: call(**asked), _may_change_again)

    def remove(
        self, service: str, operation: str, absent: Collection[str], **asked: object
    ) -> None:
        """A change that was needless if the answer is one of the codes `absent`."""
        self._tried(service, operation, asked, _may_change_again, absent)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _tried(
        self,
        service: str,
        operation: str,
        asked: Mapping[str, object],
        again: Callable[[ApiError], bool],
        codes: Collection[str],
    ) -> Asked | str:
        """The reply, or the one of `codes` that was the answer."""

        def may_again(error: ApiError) -> bool:
            return error.code not in codes and again(error)

        try:
            return self._asked(service, operation, lambda call: call(**asked), may_again)
        except ApiError as error:
            if error.code in codes:
                return error.code
            raise error.typed(self._told(service, operation)) from error

    def _answered(
        self,
        service: str,
        operation: str,
        ask: Callable[[Any], Asked],
        again: Callable[[ApiError], bool],
    ) -> Asked:
        try:
            return self._asked(service, operation, ask, again)
        except ApiError as error:
            raise error.typed(self._told(service, operation)) from error

    def _asked(
        self,
        service: str,
        operation: str,
        ask: Callable[[Any], Asked],
        again: Callable[[ApiError], bool],
    ) -> Asked:
        pause_s = _FIRST_PAUSE_S
        for left in reversed(range(_TIMES)):
            try:
                return ask(getattr(self.client(service), operation))
            except raised_by_boto() as error:
                failed = judged(error)
                if left == 0 or not again(failed):
                    raise failed from error
            self.pause(pause_s * (0.5 + self._chance.random()))
            pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)
        raise AssertionError("the last time either answers or raises")

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = boto_client(service, self.region, self.endpoint)
        return self._clients[service]

    def _told(self, service: str, operation: str) -> str:
        name = self.client(service).meta.method_to_api_mapping[operation]
        return f"{self._doing}: {service} {name}" if self._doing else f"{service} {name}"


def _may_look_again(error: ApiError) -> bool:
    return error.verdict in {Verdict.SLOWER, Verdict.UNKNOWN}


def _may_change_again(error: ApiError) -> bool:
    return error.verdict is Verdict.SLOWER or error.code in _NOT_YET
