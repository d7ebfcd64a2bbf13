"""What an instance is given at launch: where the master is, how to know it, and a token.

It is one word of text, so that it fits user data, an environment variable or a command line. The
authority's certificate is in it whole, which is its own fingerprint: a worker never speaks to a
master that this authority did not sign for, not even to join.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import asdict, dataclass, field

from eva.model.errors import InputError
from eva.model.ids import InstanceId

_PREFIX = "eva1."


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """`join_address` is for exchanging the token, `address` for everything after.

    `storage` and `runtime` are what all instances of the cluster use, as `eva serve` was told.
    `metadata` is where an instance asks about itself; empty where there is no such place.
    """

    cluster: str
    instance: InstanceId
    address: str
    join_address: str
    authority_pem: str
    token: str = field(repr=False)
    storage: str = ""
    runtime: str = "process"
    metadata: str = ""

    def encode(self) -> str:
        text = json.dumps(asdict(self), separators=(",", ":"))
        return _PREFIX + base64.urlsafe_b64encode(text.encode()).decode()


def decode_bootstrap(text: str) -> Bootstrap:
    text = text.strip()
    try:
        if not text.startswith(_PREFIX):
            raise ValueError(f"it does not begin with {_PREFIX!r}")
        found = json.loads(base64.b64decode(text[len(_PREFIX) :], altchars=b"-_", validate=True))
        if not (isinstance(found, dict) and all(isinstance(v, str) for v in found.values())):
            raise ValueError("it holds no fields of text")
        return Bootstrap(**found)
    except (ValueError, TypeError, binascii.Error) as error:
        raise InputError.single(
            "bootstrap",
            f"not a bootstrap of Eva ({error}): copy it whole, as `eva token` printed it",
        ) from error
