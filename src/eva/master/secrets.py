"""Secrets of jobs: encrypted in the journal, with a key that lies beside it and never in it.

Whoever reads the database, or a backup of it, reads no secrets. The key is made on first start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from eva.model.errors import OperatorError

KEY_FILE = "secrets.key"


class Vault:
    def __init__(self, key: bytes, where: str) -> None:
        self._cipher = Fernet(key)
        self._where = where

    @classmethod
    def at(cls, folder: Path) -> Vault:
        """The vault of this home, with a new key if it has none."""
        path = folder / KEY_FILE
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return cls(path.read_bytes(), str(path))
        with os.fdopen(descriptor, "wb") as file:
            file.write(Fernet.generate_key())
            file.flush()
            os.fsync(file.fileno())
        return cls(path.read_bytes(), str(path))

    def seal(self, secrets: Mapping[str, str]) -> str | None:
        if not secrets:
            return None
        return self._cipher.encrypt(json.dumps(dict(secrets)).encode()).decode()

    def open(self, sealed: str | None) -> dict[str, str]:
        if sealed is None:
            return {}
        try:
            opened: dict[str, str] = json.loads(self._cipher.decrypt(sealed.encode()))
        except InvalidToken:
            raise OperatorError(
                f"secrets in the journal were sealed with another key than {self._where}: restore "
                "that file from where this master ran before"
            ) from None
        return opened
