"""The master's identity folder: its authority, made on first start, its certificate, its tokens.

Whoever holds `authority.key` can let anything into the cluster, so it is readable by its owner
alone, and a folder in which it is not is refused rather than mended.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from eva.adapters.identity import certificates
from eva.adapters.identity.certificates import KeyPair
from eva.adapters.identity.tokens import TokenProblem, TokenRefusedError, TokenStore
from eva.model.errors import OperatorError
from eva.model.ids import InstanceId

TOKEN_LIFETIME_MS = 3_600_000  # longer than any instance takes to come up


class Authority:
    """Lets workers in: issues tokens, exchanges them for certificates, turns instances away."""

    def __init__(self, folder: Path, cluster: str, hosts: Sequence[str], now_ms: int) -> None:
        self.cluster = cluster
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._pair = self._load_or_make(cluster, now_ms)
        except OSError as error:
            raise OperatorError(
                f"the identity folder {folder} cannot be used ({error}): check its permissions "
                "and the space on its disk"
            ) from error
        # Made anew on every start: hosts may have changed, and nobody keeps the old one.
        self.master = certificates.master_certificate(self._pair, hosts, now_ms)
        self._tokens = TokenStore(folder / "tokens.db")

    @property
    def certificate_pem(self) -> bytes:
        return self._pair.certificate_pem

    def issue_token(
        self, instance: InstanceId, now_ms: int, lifetime_ms: int = TOKEN_LIFETIME_MS
    ) -> str:
        return self._tokens.issue(instance, now_ms + lifetime_ms)

    def join(self, instance: InstanceId, token: str, csr_pem: bytes, now_ms: int) -> bytes:
        """The certificate that a token buys; TokenRefusedError if it buys none."""
        key = certificates.key_fingerprint(csr_pem)
        self._tokens.redeem(token, instance, key, now_ms)
        return certificates.worker_certificate(self._pair, csr_pem, instance, now_ms)

    def revoke(self, instance: InstanceId) -> None:
        self._tokens.revoke(instance)

    def check(self, instance: InstanceId) -> None:
        """Raise if an instance with a good certificate was dismissed since."""
        if self._tokens.is_revoked(instance):
            raise TokenRefusedError(instance, TokenProblem.REVOKED)

    def close(self) -> None:
        self._tokens.close()

    def _load_or_make(self, cluster: str, now_ms: int) -> KeyPair:
        key_path = self._folder / "authority.key"
        certificate_path = self._folder / "authority.pem"
        if not (key_path.exists() and certificate_path.exists()):
            pair = certificates.new_authority(cluster, now_ms)
            write_secret(key_path, pair.key_pem)
            write_secret(certificate_path, pair.certificate_pem)
            return pair
        check_secret(key_path)
        return KeyPair(key_path.read_bytes(), certificate_path.read_bytes())


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that its owner alone can read, whole or not at all."""
    partial = path.with_name(path.name + ".tmp")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    partial.replace(path)


def check_secret(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise OperatorError(
            f"{path} can be read by others (mode {mode:o}): whoever read it can join the cluster. "
            f"Remove the folder {path.parent} and launch new instances, or, if nobody else was "
            f"on this machine, `chmod 600 {path}`"
        )
