"""The master's end: workers come in here, over two ports of one server.

One port speaks plain TLS, for exchanging tokens; the other asks for a certificate of our authority,
for everything else. A worker has one session at a time: a second one replaces the first, for the
first is a connection whose end nobody has noticed yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import grpc

from eva.adapters.grpc import translate
from eva.adapters.grpc.generated import worker_pb2 as pb
from eva.adapters.grpc.link import CHANNEL_OPTIONS, SERVICE, LinkTimings
from eva.adapters.grpc.session import Session, refusal
from eva.adapters.identity.authority import Authority
from eva.adapters.identity.bootstrap import Bootstrap
from eva.adapters.identity.tokens import TokenProblem, TokenRefusedError
from eva.model.errors import InputError, OperatorError
from eva.model.ids import InstanceId, TaskId
from eva.ports.runtime import LOG_START, LogChunk, LogCursor
from eva.ports.workers import Order, WorkerAwayError, WorkerListener

CLOSE_GRACE_S = 1.0

TOKEN_REFUSALS = {
    TokenProblem.UNKNOWN: pb.REFUSAL_REASON_TOKEN_UNKNOWN,
    TokenProblem.USED: pb.REFUSAL_REASON_TOKEN_USED,
    TokenProblem.EXPIRED: pb.REFUSAL_REASON_TOKEN_EXPIRED,
    TokenProblem.REVOKED: pb.REFUSAL_REASON_REVOKED,
}


@dataclass(frozen=True, slots=True)
class Listening:
    """Where to listen, and under which name workers find us. Port 0 takes any free one.

    `storage` (a URL or a path that every instance sees) and `runtime` are what workers are to use.
    `metadata` is where instances ask about themselves, if there is such a place.
    """

    bind: str = "127.0.0.1"
    port: int = 0
    join_port: int = 0
    advertise: str = "127.0.0.1"
    storage: str = ""
    runtime: str = "process"
    metadata: str = ""


class GrpcWorkers:
    """The port `Workers` over gRPC. `clock` gives wall-clock milliseconds."""

    def __init__(
        self,
        authority: Authority,
        clock: Callable[[], int],
        where: Listening | None = None,
        timings: LinkTimings | None = None,
    ) -> None:
        self._authority = authority
        self._clock = clock
        self._where = where or Listening()
        self._timings = timings or LinkTimings()
        self._sessions: dict[InstanceId, Session] = {}
        self._server: Any = None
        self._listener: WorkerListener | None = None
        self.port = self._where.port
        self.join_port = self._where.join_port

    async def serve(self, listener: WorkerListener) -> None:
        self._listener = listener
        server = grpc.aio.server(options=CHANNEL_OPTIONS)
        server.add_generic_rpc_handlers((self._handlers(),))
        master = (self._authority.master.key_pem, self._authority.master.certificate_pem)
        mutual = grpc.ssl_server_credentials(
            [master], self._authority.certificate_pem, require_client_auth=True
        )
        self.port = self._bind(server, self._where.port, mutual)
        self.join_port = self._bind(
            server, self._where.join_port, grpc.ssl_server_credentials([master])
        )
        await server.start()
        self._server = server

    def _bind(self, server: Any, port: int, credentials: Any) -> int:
        address = f"{self._where.bind}:{port}"
        try:
            bound: int = server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise OperatorError(
                f"cannot listen for workers on {address} ({error}): stop what uses the port, or "
                "choose another"
            ) from error
        return bound

    def _handlers(self) -> Any:
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Join": grpc.unary_unary_rpc_method_handler(
                    self._join,
                    request_deserializer=pb.JoinRequest.FromString,
                    response_serializer=pb.JoinReply.SerializeToString,
                ),
                "Session": grpc.stream_stream_rpc_method_handler(
                    self._session,
                    request_deserializer=pb.FromWorker.FromString,
                    response_serializer=pb.FromMaster.SerializeToString,
                ),
            },
        )

    # What workers call

    async def _join(self, request: pb.JoinRequest, _context: Any) -> pb.JoinReply:
        instance = InstanceId(request.instance)
        try:
            certificate = await asyncio.to_thread(
                self._authority.join, instance, request.token, request.csr_pem, self._clock()
            )
        except TokenRefusedError as error:
            return pb.JoinReply(refusal=refusal(TOKEN_REFUSALS[error.problem], str(error)))
        except InputError as error:
            return pb.JoinReply(refusal=refusal(pb.REFUSAL_REASON_BAD_REQUEST, str(error)))
        return pb.JoinReply(certificate_pem=certificate)

    async def _session(self, _requests: Any, context: Any) -> None:
        if self._listener is None:
            return
        session = Session(context, self._authority, self._listener, self._timings)
        if not await session.greet(self._sessions):
            return
        try:
            await session.run()
        finally:
            if self._sessions.get(session.instance) is session:
                del self._sessions[session.instance]
                self._listener.left(session.instance)

    # What the master calls

    def send(self, instance: InstanceId, order: Order) -> None:
        session = self._sessions.get(instance)
        if session is not None:
            session.write(translate.order_to_wire(order))

    def connected(self) -> tuple[InstanceId, ...]:
        return tuple(sorted(self._sessions))

    def dismiss(self, instance: InstanceId) -> None:
        self._authority.revoke(instance)
        session = self._sessions.get(instance)
        if session is not None:
            session.turn_away(
                refusal(pb.REFUSAL_REASON_REVOKED, f"{instance} was dismissed by the master")
            )

    def bootstrap(self, instance: InstanceId) -> str:
        host = self._where.advertise
        return Bootstrap(
            self._authority.cluster,
            instance,
            f"{host}:{self.port}",
            f"{host}:{self.join_port}",
            self._authority.certificate_pem.decode(),
            self._authority.issue_token(instance, self._clock()),
            self._where.storage,
            self._where.runtime,
            self._where.metadata,
        ).encode()

    async def logs(
        self,
        instance: InstanceId,
        task: TaskId,
        epoch: int,
        cursor: LogCursor = LOG_START,
        *,
        follow: bool = True,
    ) -> AsyncIterator[LogChunk]:
        session = self._sessions.get(instance)
        if session is None:
            raise WorkerAwayError(
                f"{instance} is not connected just now: try again in a few seconds, from the "
                "cursor that was reached"
            )
        async for chunk in session.logs(task, epoch, cursor, follow=follow):
            yield chunk

    async def close(self) -> None:
        if self._server is not None:
            await self._server.stop(CLOSE_GRACE_S)
            self._server = None
