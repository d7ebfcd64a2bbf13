"""The worker's key and certificate: got once for the token, kept in its state folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import structlog

from eva.adapters.grpc.dial import Identity, MasterUnreachableError, join
from eva.adapters.identity.authority import check_secret, write_secret
from eva.adapters.identity.bootstrap import Bootstrap
from eva.adapters.identity.certificates import new_key, new_request

_log = structlog.get_logger("eva.worker")


async def identify(
    state: Path, bootstrap: Bootstrap, clock: Callable[[], int], patience_ms: int, redial_ms: int
) -> Identity:
    """Ours, or a new one for the token. The key is on disk before it is shown to anybody, so that
    a lost answer can be asked for again.
    """
    key_path, certificate_path = state / "worker.key", state / "worker.pem"
    key_pem = _own_key(key_path)
    if not certificate_path.exists():
        csr_pem = new_request(key_pem, bootstrap.instance)
        given_up_ms = clock() + patience_ms
        certificate = await _join_patiently(bootstrap, csr_pem, clock, given_up_ms, redial_ms)
        write_secret(certificate_path, certificate)
    return Identity(key_pem, certificate_path.read_bytes())


def _own_key(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        write_secret(path, new_key())
    check_secret(path)
    return path.read_bytes()


async def _join_patiently(
    bootstrap: Bootstrap, csr_pem: bytes, clock: Callable[[], int], given_up_ms: int, redial_ms: int
) -> bytes:
    while True:
        try:
            return await join(bootstrap, csr_pem)
        except MasterUnreachableError as error:
            if clock() >= given_up_ms:
                raise
            _log.info("no master to join", why=str(error))
            await asyncio.sleep(redial_ms / 1_000)
