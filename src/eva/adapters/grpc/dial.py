"""The worker's end: exchange a token for a certificate, then dial and talk.

The master is known by the authority in the bootstrap and by the one name that this authority gives
to masters alone; the address it is reached at proves nothing and is not asked to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from eva.adapters.grpc import translate
from eva.adapters.grpc.generated import worker_pb2 as pb
from eva.adapters.grpc.link import CHANNEL_OPTIONS, PROTOCOL, SERVICE
from eva.adapters.identity.bootstrap import Bootstrap
from eva.adapters.identity.certificates import MASTER_NAME
from eva.model.errors import OperatorError, TryAgainError
from eva.ports.workers import WorkerHello

DIAL_TIMEOUT_S = 10.0
_OPTIONS = (*CHANNEL_OPTIONS, ("grpc.ssl_target_name_override", MASTER_NAME))

# Refusals that no patience mends: this instance has no place in the cluster.
FINAL = frozenset(
    {
        pb.REFUSAL_REASON_REVOKED,
        pb.REFUSAL_REASON_UNKNOWN_INSTANCE,
        pb.REFUSAL_REASON_WRONG_INSTANCE,
        pb.REFUSAL_REASON_TOKEN_UNKNOWN,
        pb.REFUSAL_REASON_TOKEN_USED,
        pb.REFUSAL_REASON_TOKEN_EXPIRED,
        pb.REFUSAL_REASON_BAD_REQUEST,
        pb.REFUSAL_REASON_PROTOCOL,
    }
)


class MasterUnreachableError(TryAgainError):
    """No master answers; it may be restarting."""


class RefusedByMasterError(OperatorError):
    """The master answered, and will not have us. `reason` is the wire's word for why."""

    def __init__(self, said: pb.Refusal) -> None:
        self.reason = said.reason
        super().__init__(said.message or pb.RefusalReason.Name(said.reason))

    @property
    def final(self) -> bool:
        return self.reason in FINAL


@dataclass(frozen=True, slots=True)
class Identity:
    """What the worker shows: its own key, and the certificate that it got for it."""

    key_pem: bytes
    certificate_pem: bytes


async def join(bootstrap: Bootstrap, csr_pem: bytes) -> bytes:
    """The certificate for our key; the token is used up, for anybody but this key."""
    credentials = grpc.ssl_channel_credentials(bootstrap.authority_pem.encode())
    async with grpc.aio.secure_channel(bootstrap.join_address, credentials, _OPTIONS) as channel:
        call = channel.unary_unary(
            f"/{SERVICE}/Join",
            request_serializer=pb.JoinRequest.SerializeToString,
            response_deserializer=pb.JoinReply.FromString,
        )
        request = pb.JoinRequest(
            instance=bootstrap.instance, token=bootstrap.token, csr_pem=csr_pem
        )
        try:
            reply: pb.JoinReply = await call(request, timeout=DIAL_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise _unreachable(bootstrap.join_address, error) from error
    if reply.WhichOneof("answer") != "certificate_pem":
        raise RefusedByMasterError(reply.refusal)
    return reply.certificate_pem


class MasterSession:
    """One stream to the master. Writing is by one task of the caller's, reading by another."""

    def __init__(self, call: Any, address: str) -> None:
        self._call = call
        self._address = address

    async def write(self, message: pb.FromWorker) -> None:
        try:
            await self._call.write(message)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            raise _unreachable(self._address, error) from error

    async def read(self) -> pb.FromMaster:
        """The next message; RefusedByMasterError or MasterUnreachableError when it is over."""
        try:
            message = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise _unreachable(self._address, error) from error
        if not isinstance(message, pb.FromMaster):
            raise MasterUnreachableError(
                f"the master at {self._address} ended the session: dial again"
            )
        if message.WhichOneof("message") == "refusal":
            raise RefusedByMasterError(message.refusal)
        return message

    async def greet(self, hello: WorkerHello) -> pb.Welcome:
        await self.write(pb.FromWorker(hello=translate.hello_to_wire(hello, PROTOCOL)))
        message = await self.read()
        if message.WhichOneof("message") != "welcome":
            raise MasterUnreachableError(
                f"{self._address} did not answer with a welcome: is that a master of Eva?"
            )
        return message.welcome


@asynccontextmanager
async def dial(bootstrap: Bootstrap, identity: Identity) -> AsyncIterator[MasterSession]:
    """A stream to the master, closed on leaving. Nothing is said on it yet."""
    credentials = grpc.ssl_channel_credentials(
        bootstrap.authority_pem.encode(), identity.key_pem, identity.certificate_pem
    )
    async with grpc.aio.secure_channel(bootstrap.address, credentials, _OPTIONS) as channel:
        try:
            async with asyncio.timeout(DIAL_TIMEOUT_S):
                await channel.channel_ready()
        except TimeoutError as error:
            raise _unreachable(bootstrap.address, error) from error
        call = channel.stream_stream(
            f"/{SERVICE}/Session",
            request_serializer=pb.FromWorker.SerializeToString,
            response_deserializer=pb.FromMaster.FromString,
        )()
        try:
            yield MasterSession(call, bootstrap.address)
        finally:
            call.cancel()


def _unreachable(address: str, error: Exception) -> MasterUnreachableError:
    detail = error.details() if isinstance(error, grpc.aio.AioRpcError) else type(error).__name__
    return MasterUnreachableError(f"no master answers at {address} ({detail}): will dial again")
