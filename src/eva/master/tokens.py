"""Tokens of the HTTP API: random, shown once, kept as hashes in the journal's facts."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from dataclasses import dataclass, field

from eva.master.clock import Clock
from eva.model.errors import EvaError, InputError
from eva.ports.journal import Fact, Journal, Lease

_FACT = "tokens"
_PREFIX = "eva_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,62}")


class UnauthorisedError(EvaError):
    """The token is missing, wrong or revoked."""


@dataclass(slots=True)
class Tokens:
    journal: Journal
    lease: Lease
    clock: Clock
    _known: dict[str, tuple[str, int]] = field(default_factory=dict)  # name: hash and time

    def load(self) -> None:
        fact = self.journal.fact(_FACT)
        raw = json.loads(fact.value) if fact is not None else {}
        self._known = {name: (digest, made_ms) for name, (digest, made_ms) in raw.items()}

    def make(self, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise InputError.single(
                "token",
                f"{name!r} cannot be a name: use up to 63 letters, digits, dots, dashes, "
                "underscores and @, beginning with a letter or digit",
            )
        if name in self._known:
            raise InputError.single(
                "token", f"{name!r} exists: revoke it first, or choose another name"
            )
        token = _PREFIX + secrets.token_urlsafe(32)
        self._known[name] = (_digest(token), self.clock())
        self._save()
        return token

    def revoke(self, name: str) -> None:
        if self._known.pop(name, None) is None:
            raise InputError.single("token", f"there is no token {name!r}; see: eva token list")
        self._save()

    def names(self) -> list[tuple[str, int]]:
        return [(name, made_ms) for name, (_, made_ms) in sorted(self._known.items())]

    def owner(self, token: str | None) -> str:
        """Whose token this is."""
        if token:
            given = _digest(token)
            for name, (digest, _) in self._known.items():
                if hmac.compare_digest(given, digest):
                    return name
        what = (
            "is not known here: it was revoked, or is of another cluster" if token else "is missing"
        )
        raise UnauthorisedError(
            f"the token {what}. On the master's machine run `eva up` or `eva token make NAME`; "
            "elsewhere set EVA_TOKEN"
        )

    def knows(self, token: str) -> bool:
        try:
            self.owner(token)
        except UnauthorisedError:
            return False
        return True

    def _save(self) -> None:
        value = json.dumps(self._known).encode()
        self.journal.put_fact(self.lease, Fact(_FACT, value, self.clock()))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
