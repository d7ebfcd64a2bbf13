"""What a machine that is rented from AWS can ask about itself: the instance metadata service.

Version 2 only: a token first, by PUT, and then questions with the token. That answers with a hop
limit of 1, which a process on the machine passes and a container does not. Plain HTTP from the
standard library: a worker needs no extra for it.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from eva.model.errors import TryAgainError
from eva.model.units import MS_PER_SECOND

ADDRESS = "http://169.254.169.254"
# What AWS's own tools read: another address, for emulators and tests.
ADDRESS_VARIABLE = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
NOTICE_MS = 120 * MS_PER_SECOND
_TOKEN = "/latest/api/token"  # noqa: S105  a path
_TOKEN_LIFE_S = 21_600
_FACTS = "/latest/meta-data/"
_MOST_BYTES = 65_536


class MetadataUnreachableError(TryAgainError):
    """The metadata service does not answer, or not so that it can be understood."""


class Fact(enum.Enum):
    LIFE_CYCLE = "instance-life-cycle"
    INSTANCE_ACTION = "spot/instance-action"
    REBALANCE = "events/recommendations/rebalance"


@dataclass
class InstanceMetadata:
    """`ask` blocks for a few seconds at most: call it from a thread."""

    address: str = ADDRESS
    timeout_s: float = 2.0
    _token: str = field(default="", repr=False)

    def ask(self, fact: Fact) -> str | None:
        """What is told of it; None if there is nothing to tell."""
        status, body = self._asked(fact)
        if status == HTTPStatus.UNAUTHORIZED:  # the token is too old, or not of this machine
            self._token = ""
            status, body = self._asked(fact)
        if status == HTTPStatus.NOT_FOUND:
            return None
        if status != HTTPStatus.OK:
            raise self._unreachable(f"{fact.value}: HTTP status {status}")
        return body

    def _asked(self, fact: Fact) -> tuple[int, str]:
        if not self._token:
            lives = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_LIFE_S)}
            status, body = self._request("PUT", _TOKEN, lives)
            if status != HTTPStatus.OK:
                raise self._unreachable(f"it gives no token: HTTP status {status}")
            self._token = body
        return self._request("GET", _FACTS + fact.value, {"X-aws-ec2-metadata-token": self._token})

    def _request(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
        where = urlsplit(self.address)
        try:
            connection = HTTPConnection(where.hostname or "", where.port, timeout=self.timeout_s)
            try:
                connection.request(method, where.path.rstrip("/") + path, headers=dict(headers))
                answer = connection.getresponse()
                return answer.status, answer.read(_MOST_BYTES).decode("utf-8", "replace").strip()
            finally:
                connection.close()
        except (OSError, HTTPException, ValueError) as error:
            raise self._unreachable(repr(error)) from error

    def _unreachable(self, why: str) -> MetadataUnreachableError:
        return MetadataUnreachableError(f"instance metadata at {self.address}: {why}")


def deadline_ms(action: str, now_ms: int) -> int:
    """When the machine is taken back. Who announces it unreadably means it all the same."""
    try:
        told = datetime.fromisoformat(json.loads(action)["time"])
        return round(told.timestamp() * MS_PER_SECOND)
    except (ValueError, TypeError, KeyError):
        return now_ms + NOTICE_MS
