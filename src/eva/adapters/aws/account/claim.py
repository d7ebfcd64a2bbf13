"""HOME/aws/claim.json: what this home set out to make, written before the first of it is made.

Two things are known by it after a crash. A bucket that exists and bears no tag yet is ours. And
what bears our cluster's tag was begun here, and not by somebody who happened upon the same name.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from eva.adapters.local.folder import write_durably
from eva.model.errors import OperatorError

FILE = Path("aws") / "claim.json"


@dataclass(frozen=True, slots=True)
class Claim:
    cluster: str
    account: str
    region: str
    bucket: str


def read_claim(home: Path) -> Claim | None:
    path = home / FILE
    try:
        return Claim(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise OperatorError(
            f"{path} cannot be read ({error}): remove it if nothing was begun from this home"
        ) from error


def write_claim(home: Path, claim: Claim) -> None:
    path = home / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_durably(path, asdict(claim))
    except OSError as error:
        raise OperatorError(f"{path} cannot be written ({error}): free space there") from error


def drop_claim(home: Path) -> None:
    (home / FILE).unlink(missing_ok=True)
