"""Between the adapter and moto: what EC2 does and moto does not.

moto ignores client tokens, never runs out of anything, shows everything at once, and ends instances
at once. This proxy deduplicates tokens as EC2 does, and by its script refuses, throttles, loses
replies after the call took effect, and shows instances late and their ends later. Everything else
is moto's own answer. It keeps its own list of what was launched, so that tests can count. Where
there are machines behind the instances (`ec2_box`), they say in which state each is.
"""

from __future__ import annotations

import http.client
import sys
import threading
import urllib.parse
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol

Params = dict[str, str]
NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15"
_STATE_CODES = {
    "pending": 0,
    "running": 16,
    "shutting-down": 32,
    "terminated": 48,
    "stopping": 64,
    "stopped": 80,
}
_ALIVE = ("pending", "running")
ET.register_namespace("", NAMESPACE)


@dataclass
class Launch:
    """One instance that really exists at moto. Times are the proxy's clock."""

    ref: str
    token: str
    params: Params
    launched_ms: int
    seen_from_ms: int
    ending_ms: int | None = None

    def tag(self, key: str) -> str | None:
        for name, value in self.params.items():
            if name.startswith("TagSpecification.1.Tag.") and value == key:
                return self.params[name.removesuffix(".Key") + ".Value"]
        return None


class Machines(Protocol):
    """What stands behind the instances. All of it returns at once, under the proxy's lock."""

    def begin(self, launch: Launch) -> None: ...

    def end(self, launch: Launch) -> None: ...

    def state(self, launch: Launch) -> str: ...

    def address(self, launch: Launch) -> str | None:
        """None while it has none, and moto's is shown."""
        ...


class ByTheClock:
    """No machines: states are a matter of time, as the script says."""

    def __init__(self, proxy: CloudProxy) -> None:
        self.proxy = proxy

    def begin(self, launch: Launch) -> None: ...

    def end(self, launch: Launch) -> None: ...

    def state(self, launch: Launch) -> str:
        script = self.proxy.script
        now_ms = script.clock()
        if launch.ending_ms is not None:
            over = now_ms >= launch.ending_ms + script.terminated_after_ms
            return "terminated" if over else "shutting-down"
        return "running" if now_ms >= launch.launched_ms + script.running_after_ms else "pending"

    def address(self, launch: Launch) -> str | None:
        return None


@dataclass(frozen=True)
class Fault:
    """Instead of an answer: `code` is refused with; else the connection breaks, after or before."""

    code: str | None = None
    status: int = 400
    took_effect: bool = False


LOST_REPLY = Fault(took_effect=True)
LOST_REQUEST = Fault()


def refusal(code: str, status: int = 400) -> Fault:
    return Fault(code, status)


THROTTLED = refusal("RequestLimitExceeded", 503)


@dataclass
class Script:
    """What goes wrong. `decide` is asked at every call that no queue of `next` has a fault for."""

    clock: Callable[[], int]
    next: dict[str, deque[Fault | None]] = field(default_factory=lambda: defaultdict(deque))
    decide: Callable[[str], Fault | None] = lambda _action: None
    no_capacity: dict[tuple[str, str], str] = field(default_factory=dict)  # (type, zone): code
    visible_after_ms: int = 0
    running_after_ms: int = 0
    terminated_after_ms: int = 0
    answers: dict[str, str | Callable[[bytes], str]] = field(default_factory=dict)  # not moto's
    on_call: Callable[[str], None] = lambda _action: None
    on_effect: Callable[[str], None] = lambda _action: None  # before the answer is sent


class CloudProxy:
    def __init__(
        self,
        upstream: tuple[str, int],
        clock: Callable[[], int],
    ) -> None:
        self.upstream = upstream
        self.script = Script(clock)
        self.machines: Machines = ByTheClock(self)
        self.launches: list[Launch] = []
        self.calls: list[str] = []
        self.asked: list[Params] = []
        self._tokens: dict[str, tuple[Params, bytes]] = {}
        self._lock = threading.RLock()

    # What tests look at

    def per_intent(self) -> Counter[str | None]:
        return Counter(each.tag("eva:instance") for each in self.launches)

    def alive(self) -> list[Launch]:
        with self._lock:
            return [each for each in self.launches if self.machines.state(each) in _ALIVE]

    def reset(self) -> None:
        """Everything is as at the start, at moto too."""
        connection = http.client.HTTPConnection(*self.upstream, timeout=30)
        connection.request("POST", "/moto-api/reset")
        assert connection.getresponse().status == 200
        connection.close()
        with self._lock:
            self.script = Script(self.script.clock)
            self.launches, self.calls, self.asked, self._tokens = [], [], [], {}

    # Serving

    @contextmanager
    def running(self, host: str = "127.0.0.1") -> Iterator[str]:
        proxy = self

        class Handler(_Handler):
            cloud = proxy

        server = _Server((host, 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://{host}:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def answer(self, handler: _Handler, body: bytes) -> tuple[int, bytes] | None:
        """None breaks the connection."""
        params = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))
        action = params.get("Action") or handler.headers.get("X-Amz-Target", "").split(".")[-1]
        with self._lock:
            self.calls.append(action)
            self.asked.append(params)
            fault = self._fault(action)
            self.script.on_call(action)
            if fault is None or fault.took_effect:
                answer = self._carry_out(action, params, handler, body)
                self.script.on_effect(action)
            if fault is None:
                return answer
            if fault.code is None:
                return None
            return fault.status, error_body(fault.code, json="X-Amz-Target" in handler.headers)

    def _fault(self, action: str) -> Fault | None:
        queue = self.script.next[action]
        return queue.popleft() if queue else self.script.decide(action)

    def _carry_out(
        self, action: str, params: Params, handler: _Handler, body: bytes
    ) -> tuple[int, bytes]:
        scripted = self.script.answers.get(action)
        if scripted is not None:
            return 200, (scripted if isinstance(scripted, str) else scripted(body)).encode()
        if action == "RunInstances":
            return self._run(params, handler, body)
        if action == "TerminateInstances":
            hidden = self._hidden(params["InstanceId.1"])
            if hidden is not None:
                return hidden
        if action == "DescribeInstances" and "InstanceId.1" in params:
            hidden = self._hidden(params["InstanceId.1"])
            if hidden is not None:
                return hidden
        status, reply = self.forward(handler, body)
        if status == 200 and action == "TerminateInstances":
            self._end(params["InstanceId.1"])
        if status == 200 and action == "DescribeInstances":
            reply = self._as_seen(reply)
        return status, reply

    # Launches, by token and by capacity

    def _run(self, params: Params, handler: _Handler, body: bytes) -> tuple[int, bytes]:
        token = params["ClientToken"]
        if token in self._tokens:
            same, reply = self._tokens[token]
            return (
                (200, reply) if same == params else (400, error_body("IdempotentParameterMismatch"))
            )
        offering = (params["InstanceType"], params["Placement.AvailabilityZone"])
        if offering in self.script.no_capacity:
            return 400, error_body(self.script.no_capacity[offering])
        status, reply = self.forward(handler, body)
        if status == 200:
            now_ms = self.script.clock()
            root = ET.fromstring(reply)
            ref = root.findtext(f".//{{{NAMESPACE}}}instanceId")
            assert ref, "moto's reply names no instance"
            launch = Launch(ref, token, params, now_ms, now_ms + self.script.visible_after_ms)
            self.launches.append(launch)
            self.machines.begin(launch)
            reply = self._as_seen(reply, even_new=True)
            self._tokens[token] = (params, reply)
        return status, reply

    def launch_behind(self, ref: str, params: Params, launched_ms: int) -> None:
        """Know of an instance that was launched at moto directly."""
        self.launches.append(Launch(ref, "", params, launched_ms, launched_ms))

    # Seeing: late, and in the states that EC2 passes through

    def _of(self, ref: str) -> Launch | None:
        return next((each for each in self.launches if each.ref == ref), None)

    def _hidden(self, ref: str) -> tuple[int, bytes] | None:
        launch = self._of(ref)
        if launch is not None and self.script.clock() < launch.seen_from_ms:
            return 400, error_body("InvalidInstanceID.NotFound")
        return None

    def _end(self, ref: str) -> None:
        launch = self._of(ref)
        if launch is not None and launch.ending_ms is None:
            launch.ending_ms = self.script.clock()
            self.machines.end(launch)

    def _as_seen(self, reply: bytes, *, even_new: bool = False) -> bytes:
        root = ET.fromstring(reply)
        for instances in root.iter(f"{{{NAMESPACE}}}instancesSet"):
            for item in list(instances):
                launch = self._of(item.findtext(f"{{{NAMESPACE}}}instanceId") or "")
                if launch is None:
                    continue
                if self.script.clock() < launch.seen_from_ms and not even_new:
                    instances.remove(item)
                    continue
                self._retell(item, launch)
        return ET.tostring(root)

    def _retell(self, item: ET.Element, launch: Launch) -> None:
        moment = datetime.fromtimestamp(launch.launched_ms / 1000, UTC)
        state = self.machines.state(launch)
        address = self.machines.address(launch)
        texts = {
            "launchTime": moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "instanceState/code": str(_STATE_CODES[state]),
            "instanceState/name": state,
        }
        if address is not None:
            texts["privateIpAddress"] = address
        for path, text in texts.items():
            found = item.find("/".join(f"{{{NAMESPACE}}}{part}" for part in path.split("/")))
            assert found is not None, f"moto's reply has no {path}"
            found.text = text

    def pass_on(self, handler: _Handler, body: bytes) -> None:
        """Whatever is not a call of EC2's query API: storage, as it is."""
        connection = http.client.HTTPConnection(*self.upstream, timeout=30)
        try:
            connection.request(handler.command, handler.path, body, dict(handler.headers))
            response = connection.getresponse()
            reply = response.read()
            handler.send_response_only(response.status)
            for name, value in response.getheaders():
                if name.lower() not in {"transfer-encoding", "connection"}:
                    handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(reply)
        finally:
            connection.close()

    def forward(self, handler: _Handler, body: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*self.upstream, timeout=30)
        try:
            headers = {k: v for k, v in handler.headers.items() if k.lower() != "content-length"}
            connection.request("POST", handler.path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that was killed in its call is nothing to tell of; anything else is."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # as it came


class _Handler(BaseHTTPRequestHandler):
    cloud: CloudProxy
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for an answer: a second waits 40 ms for the first to be acknowledged

    def _pass_on(self) -> None:
        self.cloud.pass_on(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

    do_GET = do_HEAD = do_PUT = do_DELETE = _pass_on  # noqa: N815  the base class's names

    def do_POST(self) -> None:
        if self.path.split("?")[0] != "/":
            self._pass_on()
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = self.cloud.answer(self, body)
        self.close_connection = answer is None
        if answer is None:
            return
        status, reply = answer
        json = "X-Amz-Target" in self.headers
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.1" if json else "text/xml")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """Say nothing: pytest's output is for failures."""


def error_body(code: str, *, json: bool = False) -> bytes:
    if json:
        return f'{{"__type": "{code}", "message": "as scripted: {code}"}}'.encode()
    return (
        f"<Response><Errors><Error><Code>{code}</Code><Message>as scripted: {code}</Message>"
        "</Error></Errors><RequestID>test</RequestID></Response>"
    ).encode()
